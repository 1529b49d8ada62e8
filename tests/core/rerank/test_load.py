"""Rerankers by name, and those of frameworks."""

import copy
import gc
import pickle
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore

from precise_rag.encoders import load_encoder
from precise_rag.errors import InputError
from precise_rag.rerank import CrossEncoderReranker, load_reranker, rerank
from precise_rag.types import UNSCORED, Candidate

TEXTS = ["one", "three three", "two two"]
CANDIDATES = [
    Candidate("d", i, i + 3, text, 0.1 * i, "cosine", metadata={"page": i}) for i, text in enumerate(TEXTS)
]
BY_LENGTH = ["three three", "two two", "one"]


NAMES = {name: name for name in ("packaged", "cascade", "cohere:rerank-english-v3.0", "a/model")}
NAMES |= {"default": "cascade", "cohere": "cohere:rerank-v3.5", "~/model": str(Path.home() / "model")}


@pytest.mark.parametrize(("name", "expected"), [*NAMES.items(), (Path("model"), "model")])
def test_rerankers_by_name(name: str, expected: str) -> None:
    reranker = load_reranker(name)
    assert reranker.name == expected
    assert isinstance(reranker, CrossEncoderReranker) == ("model" in expected)
    assert (load_reranker(name) is reranker) == ("cohere" not in str(name))
    assert (load_reranker(reranker), load_reranker()) == (reranker, load_reranker("cascade"))


@pytest.mark.parametrize("load", [load_reranker, load_encoder])
def test_a_named_model_is_one_for_all_and_ends_with_its_holders(load: Any) -> None:
    pytest.importorskip("sentence_transformers")  # without it, the files of an encoder are looked for at once
    first = load("nobody/nothing")
    assert load("nobody/nothing") is copy.deepcopy(first) is pickle.loads(pickle.dumps(first)) is first
    assert load("nobody/nothing", "cpu:1") is not first
    assert len(pickle.dumps(first)) < 500
    ended = weakref.ref(first)
    del first
    gc.collect()
    assert ended() is None


@pytest.mark.parametrize("name", ["pakaged", "cohore:rerank-v3.5", "ms-marco-MiniLM-L6-v2", "", {}])
def test_a_misspelt_name_or_another_object_fails_at_once(name: Any) -> None:
    with pytest.raises(InputError, match=r"unknown reranker .*; pass \"default\"|got dict"):
        load_reranker(name)


class Postprocessor(BaseNodePostprocessor):
    """Scores nodes by their length."""

    top_n: int = 10

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        scored = [NodeWithScore(node=n.node, score=len(n.text) / 20) for n in nodes]
        return sorted(scored, key=lambda n: -(n.score or 0.0))[: self.top_n]


class Compressor(BaseDocumentCompressor):
    """Sorts documents by their length, with scores and ids or without."""

    scored: bool = True
    ids: Sequence[str | None] = ()

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> list[Document]:
        ids = {d.page_content: self.ids[0] if self.ids else d.id for d in documents}
        scores = {text: {"relevance_score": len(text) / 20} if self.scored else {} for text in ids}
        by_length = sorted(ids, key=lambda text: -len(text))
        return [Document(text, id=ids[text], metadata=scores[text]) for text in by_length]


@pytest.mark.parametrize("theirs", [Postprocessor(), Compressor()])
def test_scores_of_a_framework_go_to_their_candidates(theirs: Any) -> None:
    for scale, scores in (("probability", [0.55, 0.35, 0.15]), (None, [1.0, 1 / 2, 1 / 3])):
        ranked = rerank("q", CANDIDATES, load_reranker(theirs, score_scale=scale))
        assert [c.text for c in ranked] == BY_LENGTH
        assert [c.score for c in ranked] == pytest.approx(scores)
        assert [c.metadata for c in ranked] == [{"page": 1}, {"page": 2}, {"page": 0}]
        assert {c.score_scale for c in ranked} == {scale or "rank"}


def test_what_is_not_returned_ranks_behind_what_is() -> None:
    best_two = Postprocessor(top_n=2)
    ranked = rerank("q", CANDIDATES, load_reranker(best_two))
    assert [(c.text, c.score) for c in ranked] == list(zip(BY_LENGTH, [1.0, 0.5, 0.0], strict=True))
    scored = rerank("q", CANDIDATES, load_reranker(best_two, score_scale="probability"))
    assert [UNSCORED in c.scores for c in scored] == [False, False, True]


def test_documents_without_scores_are_ranked_by_order_and_must_keep_an_id_or_metadata() -> None:
    assert [c.text for c in rerank("q", CANDIDATES, load_reranker(Compressor(scored=False)))] == BY_LENGTH
    with pytest.raises(InputError, match="must return numbers"):
        rerank("q", CANDIDATES, load_reranker(Compressor(scored=False), score_scale="logit"))
    for new in (None, "new", "3", "-1"):
        with pytest.raises(InputError, match="must keep the ids of what it scores"):
            rerank("q", CANDIDATES, load_reranker(Compressor(ids=[new])))
