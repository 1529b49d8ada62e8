"""An adaptation changes probabilities as it was fitted to, and only with what it was fitted for."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import pytest

from precise_rag import Document, PreciseRAG
from precise_rag.errors import IndexFormatError, InputError, ModelError
from precise_rag.index import HybridIndex, load_index
from precise_rag.rerank import (
    Adaptation,
    AdaptedReranker,
    LevelledReranker,
    calibrated,
    load_reranker,
    rerank,
)
from precise_rag.rerank.adapted import identity
from precise_rag.testing import HashEncoder
from precise_rag.types import OWN, Candidate, ScoreScale

QUESTION = "When is the else clause of a try statement executed?"


class Scorer:
    """A reranker that somebody brings: short texts first."""

    name = "short"
    score_scale: ScoreScale = "logit"

    def score(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        return [-float(len(c.text)) for c in candidates]


class Postprocessor:
    """A LlamaIndex reranker, which names its model."""

    def __init__(self, model: str) -> None:
        self.model = model

    def postprocess_nodes(self, nodes: list[Any], query_str: str) -> list[Any]:
        return nodes


class Scores:
    def __init__(self, model_name: str) -> None:
        self.model_name = model_name


class Compressor:
    """A LangChain reranker, of which an object that it holds names the model."""

    def __init__(self, model: str) -> None:
        self.model = Scores(model)

    def compress_documents(self, documents: list[Any], query: str) -> list[Any]:
        return documents


def adaptation(reranker: Any = None, **changed: Any) -> Adaptation:
    name, sha256 = identity(reranker or load_reranker("cascade"))
    settings: dict[str, Any] = {
        "weights": {"base": 0.5, "search": 0.3, "offset": -1.0},
        "reranker": name,
        "weights_sha256": sha256,
        "encoder": HashEncoder().name,
        "n_questions": 25,
        "gain": {"loss": 0.4, "loss_low": 0.1, "loss_high": 0.7},
    }
    return Adaptation(**{**settings, **changed})


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [Document(page, topics[page]) for page in ("try", "while", "with", "for")]


@pytest.fixture
def index(documents: list[Document]) -> HybridIndex:
    return HybridIndex.build(documents, HashEncoder())


def test_probabilities_are_those_of_the_regression(index: HybridIndex) -> None:
    found, packaged = index.search(QUESTION, 20, returns="sentence"), load_reranker("packaged")
    before = packaged.score(QUESTION, found).astype(float)
    one = AdaptedReranker(packaged, adaptation(packaged, weights={"base": 0.5, "offset": -1.0}))
    odds = 0.5 * np.log(before / (1 - before)) - 1.0
    assert one.score(QUESTION, found) == pytest.approx(1 / (1 + np.exp(-odds)), abs=2e-4)
    same = AdaptedReranker(packaged, adaptation(packaged, weights={"base": 1.0}))
    assert same.score(QUESTION, found) == pytest.approx(before, abs=2e-4)
    assert one.score(QUESTION, []).tolist() == []


def test_the_order_of_the_search_can_be_learned(index: HybridIndex) -> None:
    found, packaged = index.search(QUESTION, 20, returns="sentence"), load_reranker("packaged")
    by_search = AdaptedReranker(packaged, adaptation(packaged, weights={"base": 0.0, "search": 1.0}))
    ranked = rerank(QUESTION, found, by_search)
    by_place = [c for c in ranked if c.score == ranked[0].score]
    assert found[0].id in [c.id for c in by_place]
    assert [c.id for c in ranked] != [c.id for c in rerank(QUESTION, found, packaged)]
    assert {c.score_scale for c in ranked} == {"probability"}
    assert ranked[0].scores[OWN] == pytest.approx(
        float(packaged.score(QUESTION, found)[[c.id for c in found].index(ranked[0].id)])
    )


def test_an_index_brings_its_adaptation(index: HybridIndex, tmp_path: Path) -> None:
    plain = PreciseRAG(index).retrieve(QUESTION)
    index.adaptation = adaptation(weights={"base": 0.2, "offset": -1.0})
    index.save(tmp_path / "index")
    loaded = load_index(tmp_path / "index", HashEncoder())
    assert loaded.adaptation == index.adaptation
    rag = PreciseRAG(loaded)
    assert isinstance(rag.path.reranker, AdaptedReranker)
    adapted = rag.retrieve(QUESTION)
    assert adapted.decisions[0].candidate.score < plain.decisions[0].candidate.score
    other = PreciseRAG(loaded, reranker="packaged")
    assert not isinstance(other.path.reranker, AdaptedReranker)
    assert not isinstance(PreciseRAG(loaded, preset="sage").path.reranker, AdaptedReranker)
    loaded.adaptation = None
    loaded.save(tmp_path / "index")
    assert load_index(tmp_path / "index", HashEncoder()).adaptation is None


def test_a_reranker_that_is_brought_has_its_own(index: HybridIndex) -> None:
    index.adaptation = adaptation(LevelledReranker(Scorer()), weights={"base": 0.5, "own": 1.0})
    rag = PreciseRAG(index, reranker=Scorer())
    assert isinstance(rag.path.reranker, AdaptedReranker)
    best = rag.retrieve(QUESTION).decisions[0].candidate
    assert best.scores[OWN] == -len(best.text)
    with pytest.raises(ModelError, match="for the reranker 'short', not for 'cascade'; pass that one"):
        PreciseRAG(index)


def test_an_adapted_reranker_is_not_adapted_twice(index: HybridIndex) -> None:
    index.adaptation = adaptation(LevelledReranker(Scorer()), weights={"base": 0.5, "own": 1.0})
    given = AdaptedReranker(Scorer(), index.adaptation)
    assert PreciseRAG(index, reranker=given).path.reranker is given


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "adapted.json").mkdir()
    with pytest.raises(OSError, match="adapted"):
        adaptation().save(tmp_path / "adapted.json")
    assert [p.name for p in tmp_path.iterdir()] == ["adapted.json"]


def test_a_file_is_taken_where_a_reranker_is(index: HybridIndex, tmp_path: Path) -> None:
    file = tmp_path / "adapted.json"
    adaptation().save(file)
    assert Adaptation.load(file) == adaptation()
    assert [p.name for p in tmp_path.iterdir()] == ["adapted.json"]
    for given in (file, str(file)):
        reranker = load_reranker(given)
        assert isinstance(reranker, AdaptedReranker)
        assert PreciseRAG(index, reranker=given).retrieve(QUESTION).kept


def test_it_adapts_the_reranker_that_it_was_fitted_for(index: HybridIndex, tmp_path: Path) -> None:
    file, packaged = tmp_path / "adapted.json", load_reranker("packaged")
    adaptation(packaged).save(file)
    reranker = load_reranker(file)
    assert isinstance(reranker, AdaptedReranker)
    assert reranker.reranker is packaged
    index.adaptation = adaptation(packaged)
    default = PreciseRAG(index).path.reranker
    assert isinstance(default, AdaptedReranker)
    assert default.reranker is packaged
    adaptation(LevelledReranker(Scorer())).save(file)
    with pytest.raises(ModelError, match=r"'short', not for 'cascade'; pass .*AdaptedReranker\(yours, ada"):
        load_reranker(file)


@pytest.mark.parametrize("framework", ["llamaindex", "langchain"])
def test_two_models_of_one_class_have_levels_of_their_own(index: HybridIndex, framework: str) -> None:
    makers: dict[str, Callable[[str], Any]] = {"llamaindex": Postprocessor, "langchain": Compressor}
    small, large = (calibrated(load_reranker(makers[framework](model))) for model in ("small", "large"))
    index.adaptation = adaptation(small, weights={"base": 0.5, "own": 1.0})
    assert index.adaptation.reranker == f"{makers[framework].__name__}(small)"
    assert isinstance(PreciseRAG(index, reranker=makers[framework]("small")).path.reranker, AdaptedReranker)
    assert isinstance(PreciseRAG(index, reranker=makers[framework]("large")).path.reranker, LevelledReranker)
    with pytest.raises(ModelError, match=r"\(small\)', not for '.*\(large\)'"):
        AdaptedReranker(large, index.adaptation)


def test_another_encoder_or_reranker_is_refused(index: HybridIndex, tmp_path: Path) -> None:
    index.adaptation = adaptation(encoder="another")
    with pytest.raises(ModelError, match=r"for the encoder 'another', not 'hash.*run `precise adapt` again"):
        PreciseRAG(index)
    adaptation(encoder="another").save(tmp_path / "other.json")
    with pytest.raises(ModelError, match="for the encoder 'another'"):
        PreciseRAG(index, reranker=str(tmp_path / "other.json"))
    index.adaptation = adaptation(weights_sha256="0" * 64)
    with pytest.raises(ModelError, match="for the reranker 'cascade', with other weights"):
        PreciseRAG(index)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda record: {**record, "weights": {"base": 2.0}}, "its checksum is wrong"),
        (lambda record: {**record, "version": 2}, "has version 2, this one reads 1"),
        (lambda record: {**record, "format": "other"}, "is not an adaptation"),
        (lambda record: [], "is not an adaptation"),
    ],
)
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, change: Any, told: str) -> None:
    file = tmp_path / "adapted.json"
    adaptation().save(file)
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(ModelError, match=f"{told}.*; run `precise adapt` again"):
        load_reranker(file)
    with pytest.raises(ModelError, match="no adaptation that can be read"):
        load_reranker(tmp_path / "missing.json")


def test_a_damaged_index_is_one_clear_error(index: HybridIndex, tmp_path: Path) -> None:
    index.adaptation = adaptation()
    index.save(tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"base": 0.5', '"base": 5.0'))
    with pytest.raises(IndexFormatError, match="its checksum is wrong"):
        load_index(tmp_path, HashEncoder())


def test_weights_that_no_fit_gives_are_refused() -> None:
    with pytest.raises(InputError, match="no weight 'other'"):
        adaptation(weights={"other": 1.0})
    with pytest.raises(InputError, match="finite numbers"):
        adaptation(weights={"base": float("nan")})
    with pytest.raises(InputError, match="names its reranker"):
        replace(adaptation(), n_questions="many")
    with pytest.raises(InputError, match="must have"):
        Adaptation.of_record({"weights": {}})


def test_a_missing_score_is_warned_of_once(index: HybridIndex, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Scorer):
        def score(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
            return [float("nan"), *super().score(query, candidates)[1:]]

    rag = PreciseRAG(index, reranker=Broken())
    with caplog.at_level(logging.WARNING):
        rag.retrieve(QUESTION)
        rag.retrieve("What is a loop?")
    assert caplog.text.count("gave no usable score") == 1
