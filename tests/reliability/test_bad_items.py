"""One bad item never costs the others: odd text, scores, ids, metadata, nodes and queries."""

import math
import threading

import numpy as np
import pytest

from precise_rag import Document, GradientSelector, PreciseRAG, Segmenter, load_encoder, load_reranker
from precise_rag.encoders import load_encoder as load_any_encoder
from precise_rag.errors import InputError
from precise_rag.index import BM25Index, DenseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.rerank import rerank
from precise_rag.segmentation import GreedySegmenter
from precise_rag.testing import HashEncoder
from precise_rag.tokens import readable_texts
from precise_rag.types import UNRANKED, UNSCORED, Candidate, best_first, check_query, with_scores

LONE = "A lone \ud83d surrogate. The keeper lit the lamp\udfff in 1803."
GOOD = [Document(f"d{i}", f"Keeper {i} lit the lamp. The sea was calm in {1800 + i}.") for i in range(6)]
INDEXES = [HybridIndex, SentenceContextIndex, WordSentenceIndex, BM25Index, DenseIndex]
SCORES = [math.nan, math.inf, -math.inf, None, "0.9", 10**400, np.float32("nan")]


@pytest.fixture(scope="module")
def minilm():
    return load_encoder(device="cpu")


def candidates(n=4):
    return [Candidate(f"d{i}", 0, 5, f"text{i}", 0.9 - i / 10, "probability") for i in range(n)]


class Scorer:
    name, score_scale = "scorer", "probability"

    def __init__(self, scores):
        self.scores = scores

    def score(self, query, candidates):
        return self.scores


@pytest.mark.parametrize("kind", INDEXES)
def test_a_lone_surrogate_is_found_again_exactly(kind, minilm):
    index = kind.build([*GOOD, Document("lone\ud83d", LONE)], minilm)
    found = index.search("the \ud83d lamp\udfff of 1803", 20)
    assert {c.doc_id for c in found} >= {"d1", "lone\ud83d"}
    texts = {document.id: document.text for document in [*GOOD, Document("lone\ud83d", LONE)]}
    assert all(c.text == texts[c.doc_id][c.start : c.end] for c in found)


def test_models_read_a_lone_surrogate_as_a_replacement_character(minilm):
    np.testing.assert_allclose(
        minilm.encode([LONE, "ok"]), minilm.encode(readable_texts([LONE, "ok"])), atol=1e-6
    )
    assert minilm.encode_queries([LONE]).shape == (1, 384)
    assert minilm.count_tokens([LONE, "ok"])[1] == 1
    pieces = [c.text for c in GreedySegmenter(minilm).segment(LONE)]
    assert "".join(pieces) == LONE
    for model in ("small", "sage-minilm"):
        assert "".join(c.text for c in Segmenter.from_pretrained(model, device="cpu").segment(LONE)) == LONE


@pytest.mark.parametrize("reranker", ["packaged", "cascade"])
def test_a_lone_surrogate_is_reranked(reranker, minilm):
    found = [Candidate("bad", 0, len(LONE), LONE, 0.5, "rank"), *candidates()]
    ranked = rerank("the \ud83d lamp", found, load_reranker(reranker, device="cpu"))
    assert {c.id for c in ranked} == {c.id for c in found}


def test_embedding_objects_get_readable_text():
    class Embedding:
        def embed_documents(self, texts):
            return [[1.0, float(len(text.encode()))] for text in texts]

        def embed_query(self, text):
            return [1.0, float(len(text.encode()))]

    encoder = load_any_encoder(Embedding())
    assert encoder.encode([LONE, "ok"]).shape == encoder.encode_queries([LONE, "ok"]).shape == (2, 2)


def test_readable_texts_leave_good_text_alone():
    texts = ["plain", "\U0001f600 ok", ""]
    assert readable_texts(texts) is texts
    assert readable_texts([LONE])[0] == LONE.replace("\ud83d", "\ufffd").replace("\udfff", "\ufffd")
    for bad in ("text", [None], [1], [b"x"]):
        with pytest.raises(InputError, match="texts must be"):
            readable_texts(bad)


@pytest.mark.parametrize("bad", SCORES)
def test_an_odd_score_of_a_reranker_is_set_aside(bad):
    ranked = rerank("lamp", candidates(), Scorer([0.2, bad, 0.8, 0.4]))
    assert [c.doc_id for c in ranked] == ["d2", "d3", "d0", "d1"]
    assert [c.score for c in ranked] == pytest.approx([0.8, 0.4, 0.2, 0.2])
    assert [UNSCORED in c.scores for c in ranked] == [False, False, False, True]
    selection = GradientSelector(min_keep=4).select(ranked)
    assert [c.doc_id for c in selection.kept] == ["d2", "d3", "d0"]
    assert selection.reasons[-1] == "it has no usable score"
    again = rerank("lamp", ranked, Scorer([0.1, 0.2, 0.3, 0.9]))
    assert again[0].doc_id == "d1"
    assert UNSCORED not in again[0].scores


def test_a_reranker_without_any_number_is_an_error():
    with pytest.raises(InputError, match="must return numbers"):
        rerank("lamp", candidates(), Scorer([math.nan] * 4))
    assert rerank("lamp", [], Scorer([])) == []


def test_a_pipeline_survives_one_odd_score():
    class OneBad(Scorer):
        def score(self, query, candidates):
            return [math.nan, *np.linspace(0.9, 0.5, len(candidates) - 1)]

    rag = PreciseRAG.from_documents(GOOD, encoder=HashEncoder(), reranker=OneBad(None), evidence=None)
    selection = rag.retrieve("lamp?")
    assert len(selection.kept) >= 3
    assert sum(UNRANKED in d.candidate.scores for d in selection.decisions) == 1
    grown = PreciseRAG(rag.index, reranker=OneBad(None)).retrieve("lamp?")
    assert len(grown.kept) >= 3


def test_scores_do_not_move_because_another_one_is_odd():
    odd = with_scores(candidates(), [0.1, math.nan, 0.3, 0.2])
    assert [c.score for c in odd] == pytest.approx([0.1, 0.1, 0.3, 0.2])
    assert [c.doc_id for c in best_first(odd)] == ["d2", "d3", "d0", "d1"]


@pytest.mark.parametrize("score", [None, "x", 10**400, math.nan, [1]])
def test_a_candidate_says_that_its_score_is_no_number(score):
    with pytest.raises(InputError, match="score must be a number"):
        Candidate("a", 0, 1, "x", score, "probability")


@pytest.mark.parametrize("query", [None, 5, b"x", ["a"], math.nan])
@pytest.mark.parametrize("kind", INDEXES)
def test_a_query_must_be_a_string(kind, query):
    with pytest.raises(InputError, match="the query must be a string"):
        kind.build(GOOD, HashEncoder()).search(query)


@pytest.mark.parametrize("query", [None, 5, b"x", ["a"], "", " \n"])
def test_a_query_must_not_be_blank(query):
    rag = PreciseRAG.from_documents(GOOD, encoder=HashEncoder())
    for ask in (rag.retrieve, rag.answer, check_query, lambda q: rerank(q, candidates(), Scorer([1] * 4))):
        with pytest.raises(InputError, match="the query must"):
            ask(query)


@pytest.mark.parametrize("top_k", [None, "3", 2.5, 0, -1])
def test_top_k_must_be_a_whole_number(top_k):
    with pytest.raises(InputError, match="top_k must be"):
        HybridIndex.build(GOOD, HashEncoder()).search("lamp", top_k)


@pytest.mark.parametrize(
    "vector", [[math.nan] * 256, [math.inf] * 256, ["a"] * 256, [1.0] * 3, [[1.0], [1.0, 2.0]]]
)
def test_a_vector_must_be_finite_numbers(vector):
    with pytest.raises(InputError, match="the query's vector must be"):
        HybridIndex.build(GOOD, HashEncoder()).search("lamp", vector=vector)


@pytest.mark.parametrize("documents", [["text"], "text", [None], [GOOD[0], "text"]])
def test_only_documents_are_indexed(documents):
    with pytest.raises(InputError, match="must be Document objects"):
        HybridIndex.build(documents, HashEncoder())


def test_metadata_must_be_a_mapping():
    for metadata in (None, [1], "x"):
        with pytest.raises(InputError, match="metadata must be a mapping"):
            Document("a", "text", metadata)


LOOP = {}
LOOP["self"] = LOOP


@pytest.mark.parametrize(
    "metadata",
    [{1: "a"}, {"b": b"x"}, {"n": np.arange(3)}, {"lock": threading.Lock()}, LOOP, {"x": 10**5000}],
    ids=["int key", "bytes", "numpy", "lock", "loop", "huge"],
)
def test_odd_metadata_is_searched_and_named_when_it_cannot_be_saved(metadata, tmp_path):
    odd = Document("odd", "Keeper lit the odd lamp.", metadata)
    index = HybridIndex.build([*GOOD, odd], HashEncoder())
    assert "odd" in {c.doc_id for c in index.search("keeper lit lamp", 20)}
    with pytest.raises(InputError, match="document 'odd'"):
        index.save(tmp_path / "index")
    assert not (tmp_path / "index" / "manifest.json").exists()
