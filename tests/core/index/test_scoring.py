"""What scores are made of: vectors of few bits, groups of rows, their contexts, words, draws and fusion."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.index import (
    DenseIndex,
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    context,
    ranking,
    table,
)
from precise_rag.index import vectors as module
from precise_rag.index.bm25 import BM25Matrix, BM25Settings, Postings, bm25_scores, counted_words
from precise_rag.index.context import chunk_vectors
from precise_rag.index.groups import Passages, passage_ids
from precise_rag.index.hybrid import dense_share
from precise_rag.index.table import Columns, Shard
from precise_rag.index.vectors import Products, dot, read_vectors, vector_columns
from precise_rag.index.words import load_stop_words, split_words, word_columns, word_number, word_numbers
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, SentenceTable
from support.documents import read_cases
from support.vectors import NEW, OLD, clustered


@pytest.mark.parametrize("kind", [DenseIndex, SentenceContextIndex, WordSentenceIndex, HybridIndex])
def test_every_index_of_vectors_takes_a_precision_and_maps_what_it_loads(
    kind: type[DocumentIndex], tmp_path: Path
) -> None:
    exact = kind.build(OLD + NEW, HashEncoder())
    small = kind.build(OLD + NEW, HashEncoder(), precision="int8")
    small.save(tmp_path / "index")
    small = kind.load(tmp_path / "index", HashEncoder())
    vectors = small._parts[0].shard.columns["vectors"]
    assert vectors.dtype == np.int8
    assert isinstance(vectors, np.memmap)
    assert not vectors.flags.writeable
    expected = {c.id: c.score for c in exact.search("old cat sleeps", 200)}
    found = {c.id: c.score for c in small.search("old cat sleeps", 200)}
    assert found == pytest.approx(expected, abs=0.03)


def shard_of(columns: Columns) -> Shard:
    """A shard of one document with these rows."""
    return Shard([Document("one", "")], np.array([0, len(columns["vectors"])]), columns)


def test_rough_products_are_within_the_margin_two_parts_nearly_exact_and_few_not_rounded() -> None:
    assert Products.of(shard_of({"vectors": clustered(50)})).rough_columns is None
    vectors = clustered(500)
    columns = vector_columns(vectors, "int8")
    rounded = Products(columns, columns)
    for query in clustered(20, seed=1):
        assert 0 < np.abs(rounded.rough(query) - vectors @ query).max() < rounded.margin
    exact = read_vectors(columns, slice(None)) @ query
    one, two = (np.abs(dot(columns, query, parts=k) - exact).max() for k in (1, 2))
    assert two < one / 30


@pytest.mark.parametrize("share", [None, 0.5, 0.05])
def test_best_rows_are_those_of_all_products(share: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_ROWS", 1)
    monkeypatch.setattr(module, "_FEW", 1)
    columns = {"vectors": clustered(2000)}
    shard = shard_of(columns)
    products, exact = Products.of(shard), Products(columns)
    assert set(shard.derived) == {"int8"}
    rows = None if share is None else np.flatnonzero(np.random.default_rng(0).random(2000) < share)
    for query in clustered(20, seed=1):
        for top_k in (1, 10, 3000):
            found, scores = products.best(query, top_k, rows)
            expected, expected_scores = exact.best(query, top_k, rows)
            assert found.tolist() == expected.tolist()
            np.testing.assert_allclose(scores, expected_scores, atol=1e-6)


def test_draws_are_spread_evenly_within_their_range() -> None:
    drawn = ranking.draws(ranking.seeds_of(["one"]).repeat(20_000), range(20_000)) / 2**63
    shares, _ = np.histogram(drawn, bins=10, range=(0, 1))
    assert abs(shares / 20_000 - 0.1).max() < 0.01
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.03


def test_of_equal_scores_those_with_the_lowest_draws_are_taken() -> None:
    scores = np.array([1, 3, 1, 1, 2, 1], dtype=np.float32)
    drawn = np.array([5, 9, 1, 4, 8, 2])
    assert ranking.fair_rows(scores, 4, lambda rows: drawn[rows]).tolist() == [1, 2, 4, 5]
    assert ranking.fair_rows(scores, 2, lambda rows: drawn[rows]).tolist() == [1, 4]
    assert ranking.fair_rows(scores, 9, lambda rows: drawn[rows]).tolist() == [0, 1, 2, 3, 4, 5]
    assert ranking.best_rows(scores, 5, lambda rows: drawn[rows]).tolist() == [1, 4, 2, 5, 3]
    drawn = ranking.draws(ranking.seeds_of(["one"]).repeat(5_000), range(5_000))
    rows = ranking.fair_rows(np.zeros(5_000, dtype=np.float32), 20, lambda rows: drawn[rows])
    assert sorted(drawn[rows].tolist()) == sorted(drawn.tolist())[:20]


def test_scores_are_scaled_by_their_range_and_weighted_by_their_deviation() -> None:
    np.testing.assert_allclose(ranking.scaled(np.array([2, 4, 3], dtype=np.float32)), [0, 1, 0.5])
    np.testing.assert_allclose(ranking.scaled(np.array([2, 4], dtype=np.float32), low=0), [0.5, 1])
    np.testing.assert_allclose(ranking.scaled(np.array([3, 3], dtype=np.float32)), [0, 0])
    scores = np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 1] * 10, dtype=np.float32)
    # the best is 0.9 above the mean, and a deviation is 0.3: 3 deviations are half of the way from 2 to 4
    assert dense_share(scores, 1) == pytest.approx(0.5)
    assert dense_share(np.zeros(100, dtype=np.float32), 0) == 0


def test_the_pool_is_the_union_of_the_best_rows_of_each() -> None:
    dense = np.array([0.9, 0.5, 0.1, 0.7], dtype=np.float32)
    words = np.array([0.0, 8.0, 9.0, 1.0], dtype=np.float32)
    for pool, rows in ((1, [0, 2]), (2, [0, 1, 2, 3])):
        assert ranking.pooled([dense, words], pool=pool, drawn=np.negative).tolist() == rows


@pytest.mark.parametrize(("passages", "expected"), read_cases("index.json", "passages"))
def test_passages_are_whole_paragraphs_or_whole_sentences(passages: Passages, expected: list[int]) -> None:
    spans = np.stack([np.arange(7), np.arange(1, 8)], axis=1)
    paragraphs, n_tokens = np.array([0, 0, 1, 2, 2, 2, 3]), np.array([4, 3, 3, 8, 3, 2, 4])
    sentences = SentenceTable("t", spans, paragraphs, n_tokens)
    assert passage_ids(Document("t", "x" * 7), sentences, passages).tolist() == expected


def by_hand(vectors, n_tokens, start, end, alpha, reach=math.inf):
    """The formula of a vector in context, sentence by sentence."""
    before, first = 0, start
    while first and before + n_tokens[first - 1] <= reach:
        first -= 1
        before += n_tokens[first]
    after, behind = 0, end
    while behind < len(vectors) and after + n_tokens[behind] <= reach:
        after += n_tokens[behind]
        behind += 1
    own = sum(n_tokens[i] * vectors[i] for i in range(start, end))
    own = own / np.linalg.norm(own)
    others = [i for i in range(first, behind) if not start <= i < end]
    if others:
        around = sum(n_tokens[i] * vectors[i] for i in others)
        own = alpha * own + (1 - alpha) * around / np.linalg.norm(around)
    return own / np.linalg.norm(own)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.6, 1.0])
@pytest.mark.parametrize("at_once", [7, 1_000])
def test_mean_contexts_equal_definition(at_once: int, alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of groups that are read in slices."""
    monkeypatch.setattr(context, "_SLICE", at_once)
    choose, encoder = random.Random(alpha), HashEncoder(16)
    groups = [[0], [1, 2], [3, 4, 5], [6, 7, 8, 9, 10, 11], [12], [13, 14, 15, 16]]
    texts = [" ".join(f"Word{choose.randint(0, 30)}" for _ in range(choose.randint(1, 9))) for _ in range(17)]
    text = "\n\n".join(" ".join(f"{texts[i]}!" for i in group) for group in groups)
    index = SentenceContextIndex.build([Document("d", text)], encoder, alpha=alpha, passages="paragraphs")
    found = sorted(index.search("word3 word7", 100), key=lambda c: c.start)
    vectors = encoder.encode([c.text for c in found])
    parts = [(vectors[group], [found[row].n_tokens for row in group]) for group in groups]
    expected = np.array([by_hand(*part, i, i + 1, alpha) for part in parts for i in range(len(part[1]))])
    pieces, weighted = zip(*index.weighted_vectors(), strict=True)
    assert [piece.id for piece in pieces] == [c.id for c in found]
    np.testing.assert_allclose(weighted, expected, atol=2e-4)
    scores = expected @ encoder.encode_queries(["word3 word7"])[0]
    np.testing.assert_allclose([c.score for c in found], scores, atol=2e-3)


@given(
    n_tokens=st.lists(st.integers(1, 90), min_size=1, max_size=12),
    alpha=st.sampled_from([0.0, 0.3, 0.6, 1.0]),
    seed=st.integers(0, 1000),
)
def test_chunk_vectors_equal_the_formula(n_tokens, alpha, seed):
    rng = np.random.default_rng(seed)
    vectors = np.abs(rng.normal(size=(len(n_tokens), 8))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    edges = np.flatnonzero(rng.random(len(n_tokens)) < 0.4)
    starts = np.unique(np.concatenate([[0], edges]))
    ends = np.append(starts[1:], len(n_tokens))
    found = chunk_vectors(vectors, np.array(n_tokens), starts, ends, alpha=alpha)
    expected = [
        by_hand(vectors, n_tokens, start, end, alpha, context._REACH)
        for start, end in zip(starts, ends, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32


@pytest.mark.parametrize(("text", "expected"), read_cases("index.json", "words"))
def test_a_text_is_split_into_words(text: str, expected: str) -> None:
    assert split_words(text) == expected.split()


def test_words_have_the_same_number_everywhere_and_stop_words_of_a_named_list_or_ones_own_have_none() -> None:
    columns = word_columns(["The cat, the dog", "", "dog"], "english")
    cat, dog, again = columns["words.values"].tolist()
    assert columns["words.lengths"].tolist() == [2, 0, 1]
    assert dog == again == word_numbers("Dog", "none")[0]
    assert cat not in (0, dog)

    assert {"the", "what", "is"} <= load_stop_words("english")
    assert not {"cat", "bank"} & load_stop_words("english")
    assert load_stop_words("none") == frozenset()
    assert load_stop_words(("Für", "die")) == {"fur", "die"}
    assert word_numbers("für die Katze", ("Für", "die")).tolist() == [word_number("katze")]


def matrix(rows: list[list[int]]) -> BM25Matrix:
    terms = np.array([term for row in rows for term in row], dtype=np.int32)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return BM25Matrix(counted_words({"words.values": terms, "words.lengths": lengths}))


ROWS = st.lists(st.tuples(st.lists(st.integers(0, 11), max_size=9), st.booleans()), min_size=1, max_size=9)


@settings(max_examples=60)
@given(shards=st.lists(ROWS, min_size=1, max_size=3), query=st.sets(st.integers(0, 15), max_size=5))
def test_scores_equal_its_formula(shards: list[list[tuple[list[int], bool]]], query: set[int]) -> None:
    """sum of idf * tf / (tf + k1 * (1 - b + b * length / mean)), idf = ln(1 + (N - df + .5) / (df + .5))

    Over all rows of all shards that are not deleted.
    """
    alive = [np.array([stays for _, stays in shard]) for shard in shards]
    corpus = [row for shard in shards for row, stays in shard if stays]
    mean = (sum(map(len, corpus)) / len(corpus) if corpus else 0) or 1

    def score(row: list[int]) -> float:
        total = 0.0
        for term in query & set(row):
            df = sum(term in other for other in corpus)
            tf = row.count(term)
            idf = math.log(1 + (len(corpus) - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + 1.2 * (0.3 + 0.7 * len(row) / mean))
        return total

    matrices = [matrix([row for row, _ in shard]) for shard in shards]
    found, _ = bm25_scores(matrices, alive, np.array(sorted(query)), BM25Settings(k1=1.2, b=0.7))
    kept = np.concatenate([scores[stays] for scores, stays in zip(found, alive, strict=True)])
    np.testing.assert_allclose(kept, [score(row) for row in corpus], rtol=1e-4, atol=1e-6)


def test_the_words_of_a_saved_index_are_not_weighed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = HybridIndex.build(OLD + NEW, HashEncoder())
    index.save(tmp_path / "index")
    monkeypatch.setattr(table, "SMALL", 0)
    with monkeypatch.context() as patch:
        patch.setattr(Postings, "of", lambda *_: pytest.fail("was weighed again"))
        loaded = HybridIndex.load(tmp_path / "index", HashEncoder())
        assert loaded.search("old cat sleeps", 9) == index.search("old cat sleeps", 9)
        loaded.delete(["old3"])
        found = loaded.search("old cat sleeps", 9)
    rest = HybridIndex.build([d for d in OLD + NEW if d.id != "old3"], HashEncoder())
    expected = [(c.id, pytest.approx(c.score, rel=1e-5)) for c in rest.search("old cat sleeps", 9)]
    assert [(c.id, c.score) for c in found] == expected
