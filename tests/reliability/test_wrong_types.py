"""Values of the wrong kind, wherever a user can pass one: each ends in one of our errors."""

import asyncio
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import precise_rag as pr
from precise_rag.documents import read_documents
from precise_rag.errors import PreciseRagError
from precise_rag.rerank import load_reranker, rerank
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.figures import count

ODD = {
    "nothing": None,
    "bytes": b"ab",
    "a flag": True,
    "a number": 7,
    "a fraction": 1.5,
    "a negative number": -1,
    "not a number": float("nan"),
    "5,001 digits": 10**5_000,
    "an object": {"a": 1},
    "a set": {1},
    "a list of nothing": [None],
    "a list of texts": ["x"],
    "a text": "x",
    "a lone surrogate": "\ud800",
    "something": object(),
}
ENCODER = HashEncoder(8)
DOCUMENTS = [pr.Document("a", "The lamp is lit. Ilse keeps it."), pr.Document("b", "Otters sleep here.")]
CANDIDATES = [pr.Candidate("a", 0, 5, "The l", 0.5, "probability")]
KINDS = [
    pr.HybridIndex,
    pr.SentenceContextIndex,
    pr.WordSentenceIndex,
    pr.BM25Index,
    pr.DenseIndex,
]
LLM = ScriptedLLM(lambda messages: "yes")

Use = Callable[[Any], object]


def index_uses(kind: Any) -> dict[str, Use]:
    """Every place of an index that takes a value."""

    def with_setting(name: str, value: Any) -> object:
        return kind.build(DOCUMENTS, ENCODER, **{name: value}).search("lamp")

    def built() -> Any:
        return kind.build(DOCUMENTS, ENCODER)

    uses: dict[str, Use] = {
        "build documents": lambda value: kind.build(value, ENCODER),
        "build encoder": lambda value: kind.build(DOCUMENTS, value),
        "add": lambda value: built().add(value),
        "delete": lambda value: built().delete(value),
        "search": lambda value: built().search(value),
        "search top_k": lambda value: built().search("lamp", value),
        "search filter": lambda value: built().search("lamp", filter=value),
        "search a filter of": lambda value: built().search("lamp", filter={"source": value}),
        "search vector": lambda value: built().search("lamp", vector=value),
        "save": lambda value: built().save(value),
        "load": lambda value: kind.load(value, ENCODER),
        "load verify": lambda value: kind.load("nowhere", ENCODER, verify=value),
        "lock": lambda value: kind.lock("locked", value).__enter__(),
    }
    for field in fields(kind.scheme_type.settings_type):
        uses[f"setting {field.name}"] = partial(with_setting, field.name)
    return {f"{kind.__name__} {name}": use for name, use in uses.items()}


def made_with(make: Any, names: str, **others: Any) -> dict[str, Use]:
    """A call of `make` with an odd value for each of these arguments."""

    def call(name: str, value: Any) -> object:
        return make(**{**others, name: value})

    return {f"{make.__qualname__} {name}": partial(call, name) for name in names.split()}


def pipeline() -> pr.PreciseRAG:
    return pr.PreciseRAG.from_documents(DOCUMENTS, llm=LLM, encoder=ENCODER)


def load_saved(encoder: Any) -> object:
    pr.HybridIndex.build(DOCUMENTS, ENCODER).save("saved")
    return pr.load_index("saved", encoder)


def segmenter() -> pr.Segmenter:
    return pr.Segmenter.from_pretrained("small")


USES: dict[str, Use] = {
    "split_sentences": pr.split_sentences,
    "read_documents": lambda value: list(read_documents(value)),
    "read_documents max_bytes": lambda value: list(read_documents("text.txt", max_bytes=value)),
    "load_index": pr.load_index,
    "load_index encoder": load_saved,
    "load_reranker": load_reranker,
    "load_llm": pr.load_llm,
    "weighted_sentences": lambda value: list(pr.weighted_sentences(value, ENCODER)),
    "weighted_chunks": lambda value: list(pr.weighted_chunks(value, ENCODER)),
    "Segmenter.segment": lambda value: segmenter().segment(value),
    "Segmenter.explain": lambda value: segmenter().explain(value),
    "Segmenter.segment_many": lambda value: list(segmenter().segment_many(value)),
    "Segmenter.segment_many of one": lambda value: list(segmenter().segment_many([value])),
    "Segmenter.from_pretrained": pr.Segmenter.from_pretrained,
    "GreedySegmenter.segment": lambda value: pr.GreedySegmenter(ENCODER).segment(value),
    "GreedySegmenter.segment_many": lambda value: list(pr.GreedySegmenter(ENCODER).segment_many(value)),
    "GradientSelector.select": lambda value: pr.GradientSelector().select(value),
    "RedundancyFilter.filter": lambda value: pr.RedundancyFilter().filter(value),
    "RelevanceFilter.filter": lambda value: pr.RelevanceFilter(LLM).filter("Who?", value),
    "RelevanceFilter.filter question": lambda value: pr.RelevanceFilter(LLM).filter(value, CANDIDATES),
    "DynamicThreshold.of": lambda value: pr.DynamicThreshold().of(value),
    "QueryRewriter.queries": lambda value: pr.QueryRewriter(LLM).queries(value),
    "PriceTable": pr.PriceTable,
    "rerank": lambda value: rerank(value, CANDIDATES, load_reranker()),
    "rerank candidates": lambda value: rerank("Who?", value, load_reranker()),
    "PreciseRAG.retrieve": lambda value: pipeline().retrieve(value),
    "PreciseRAG.retrieve history": lambda value: pipeline().retrieve("Who?", history=value),
    "PreciseRAG.retrieve candidates": lambda value: pipeline().retrieve("Who?", candidates=value),
    "PreciseRAG.retrieve filter": lambda value: pipeline().retrieve("Who?", filter=value),
    "PreciseRAG.aretrieve": lambda value: asyncio.run(pipeline().aretrieve(value)),
    "PreciseRAG.answer": lambda value: pipeline().answer(value),
    "PreciseRAG.aanswer": lambda value: asyncio.run(pipeline().aanswer(value)),
    "PreciseRAG.stream": lambda value: list(pipeline().stream(value)),
    **made_with(
        pr.PreciseRAG.from_documents, "documents encoder llm preset index_options", documents=DOCUMENTS
    ),
    **made_with(
        pr.PreciseRAG,
        "index rewriter reranker redundancy relevance evidence selector feedback n_candidates llm judge "
        "order",
        index=pr.HybridIndex.build(DOCUMENTS, ENCODER),
    ),
    **made_with(pr.Document, "id text metadata", id="a", text="b"),
    **made_with(
        pr.Candidate, "score score_scale", doc_id="a", start=0, end=1, text="b", score=1.0, score_scale="rank"
    ),
    **made_with(pr.GradientSelector, "min_k ratio max_k max_tokens min_score share_of_best min_keep min_gap"),
    **made_with(pr.RedundancyFilter, "threshold prefilter"),
    **made_with(pr.DynamicThreshold, "tight min_score ceiling cap min_keep"),
    **made_with(pr.Budget, "calls tokens seconds cost"),
    **made_with(pr.FeedbackController, "accept max_rounds reach"),
    **made_with(pr.GreedySegmenter, "encoder threshold max_chars", encoder=ENCODER),
    **made_with(
        pr.Segmenter.from_pretrained, "threshold max_tokens min_tokens coarse_tokens paragraphs", name="small"
    ),
    **made_with(pr.OpenAIChat, "base_url timeout max_retries", model="m"),
}
for _kind in KINDS:
    USES |= index_uses(_kind)


@pytest.mark.parametrize("name", USES)
def test_a_value_of_the_wrong_kind_is_one_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("The lamp is lit.")
    for what, value in ODD.items():
        if what == "a number" and name == "read_documents":
            continue
        try:
            with warnings.catch_warnings(), suppress(PreciseRagError):
                warnings.simplefilter("ignore", RuntimeWarning)
                USES[name](value)
        except Exception as error:
            raise AssertionError(f"{name}: {what}: {error!r}") from error
    count("values of the wrong kind, taken or refused with one of our errors", len(ODD))
