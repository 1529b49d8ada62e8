import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag import Document, Segmenter
from precise_rag.errors import InputError
from precise_rag.index import DenseIndex, weighted_chunks
from precise_rag.index.arrays import chunk_vectors as module
from precise_rag.index.arrays.chunk_vectors import chunk_vectors
from precise_rag.testing import HashEncoder

DOCUMENTS = [
    Document(
        "tea", "Green tea is steamed. Black tea is oxidised.\n\nIron rusts in air. Zinc keeps it.", {"n": 1}
    ),
    Document("blank", " \n"),
    Document("bees", "Bees dance to tell of flowers. The dance points at the sun."),
]


def by_hand(vectors, n_tokens, start, end, alpha, reach):
    """The module's formula, sentence by sentence."""
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


@settings(deadline=None)
@given(
    n_tokens=st.lists(st.integers(1, 90), min_size=1, max_size=12),
    alpha=st.sampled_from([0.0, 0.3, 0.6, 1.0]),
    seed=st.integers(0, 1000),
)
def test_a_chunk_is_the_mean_of_its_sentences_weighed_with_the_text_around_it(n_tokens, alpha, seed):
    rng = np.random.default_rng(seed)
    vectors = np.abs(rng.normal(size=(len(n_tokens), 8))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    edges = np.flatnonzero(rng.random(len(n_tokens)) < 0.4)
    starts = np.unique(np.concatenate([[0], edges]))
    ends = np.append(starts[1:], len(n_tokens))
    found = chunk_vectors(vectors, np.array(n_tokens), starts, ends, alpha=alpha)
    expected = [
        by_hand(vectors, n_tokens, start, end, alpha, module._REACH)
        for start, end in zip(starts, ends, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32


def test_sentences_out_of_reach_do_not_count(monkeypatch):
    monkeypatch.setattr(module, "_REACH", 10)
    vectors = np.eye(3, dtype=np.float32)
    one_each = np.arange(3), np.arange(1, 4)
    near = chunk_vectors(vectors, np.array([10, 5, 10]), *one_each, alpha=0.5)
    assert near[0][2] == 0 < near[0][1]
    assert (near[1] > 0).all()
    far = chunk_vectors(vectors, np.array([11, 11, 11]), *one_each, alpha=0.5)
    np.testing.assert_array_equal(far, vectors)


def test_a_dense_index_of_chunks_in_context_encodes_sentences_alone():
    encoder = HashEncoder()
    index = DenseIndex.build(DOCUMENTS, encoder, chunks="paragraphs", chunk_vectors="context", alpha=0.5)
    assert encoder.calls == [
        "Green tea is steamed.",
        "Black tea is oxidised.",
        "Iron rusts in air.",
        "Zinc keeps it.",
        "Bees dance to tell of flowers.",
        "The dance points at the sun.",
    ]
    plain = DenseIndex.build(DOCUMENTS, HashEncoder(), chunks="paragraphs", chunk_vectors="mean")
    query = "Is tea steamed?"
    iron, plain_iron = (
        next(c.score for c in found.search(query, 5) if "Iron" in c.text) for found in (index, plain)
    )
    assert plain_iron < iron, "the paragraph about tea lends its neighbour some of its meaning"


def test_a_store_of_weighted_chunks_searches_like_the_index():
    segmenter = Segmenter.from_pretrained("small", max_tokens=12)
    pieces = list(weighted_chunks(iter(DOCUMENTS), HashEncoder(), segmenter, alpha=0.7))
    for document in DOCUMENTS:
        mine = [piece for piece in pieces if piece.metadata["doc_id"] == document.id]
        assert "".join(piece.text for piece in mine) == document.text.strip(" \n")
        assert all(p.text == document.text[p.metadata["start"] : p.metadata["end"]] for p in mine)
    assert pieces[0].metadata["n"] == 1
    index = DenseIndex.build(DOCUMENTS, HashEncoder(), chunks=segmenter, chunk_vectors="context", alpha=0.7)
    query = "What do bees dance for?"
    scores = np.stack([p.vector for p in pieces]) @ HashEncoder().encode_queries([query])[0]
    best = [pieces[i].text.strip() for i in np.argsort(-scores, kind="stable")]
    found = index.search(query, len(pieces))
    assert [c.text for c in found] == best
    np.testing.assert_allclose([c.score for c in found], np.sort(scores)[::-1], atol=1e-6)


def test_pieces_of_one_long_sentence_share_its_vector():
    text = "Alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu."
    pieces = list(
        weighted_chunks(
            [Document("d", text)], HashEncoder(), Segmenter.from_pretrained("small", max_tokens=5)
        )
    )
    assert len(pieces) > 1
    assert "".join(p.text for p in pieces) == text
    for piece in pieces[1:]:
        np.testing.assert_array_equal(piece.vector, pieces[0].vector)


def test_weights_outside_0_to_1_are_refused():
    with pytest.raises(InputError, match=r"alpha is 1\.5"):
        DenseIndex.build(DOCUMENTS, HashEncoder(), alpha=1.5)
    with pytest.raises(InputError, match="alpha is -1"):
        next(weighted_chunks(DOCUMENTS, HashEncoder(), alpha=-1))
