import numpy as np

from precise_rag.index.arrays.context import GroupMeans, group_norms
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.heading_columns import WEIGHT, Headings, heading_columns
from precise_rag.index.arrays.words import Vocabulary

ABOVE = [[(), (), ("Pumps",)], [("Pumps", "Care"), ("Pumps", "Care"), ("Pumps",)]]
"""What stands above the rows of two documents."""


def columns() -> tuple[dict[str, np.ndarray], list[str], Vocabulary]:
    encoded: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        encoded.extend(texts)
        return np.eye(4, dtype=np.float32)[: len(texts)]

    vocabulary = Vocabulary(frozenset())
    texts = ["one", "two words", "three", "four", "five", "six"]
    words = vocabulary.columns(texts)
    blocks = heading_columns(ABOVE, encode, vocabulary.columns, 4)
    joined = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    return {**words, **joined}, encoded, vocabulary


def test_each_distinct_heading_is_encoded_once_and_kept_where_it_begins() -> None:
    found, encoded, _ = columns()
    assert encoded == ["Pumps", "Pumps > Care"]
    assert found["heading_vectors.lengths"].tolist() == [1, 0, 1, 1, 0, 1]
    headings = Headings.of(found)
    assert headings is not None
    assert headings.of_row.tolist() == [0, 0, 1, 2, 2, 3]
    assert headings.scores(np.array([1, 2, 0, 0], dtype=np.float32)).tolist() == [0, 1, 2, 1]


def test_groups_have_the_words_of_their_headings() -> None:
    found, _, vocabulary = columns()
    headings = Headings.of(found)
    assert headings is not None
    groups = Groups.by_change(np.array([0, 0, 0, 1, 2, 2]))
    terms, lengths = headings.words_with(found, groups)
    words = vocabulary.words()
    rows = np.split(terms, np.cumsum(lengths)[:-1])
    assert [" ".join(words[number] for number in row) for row in rows] == [
        "one two words pumps three",
        "pumps care four",
        "pumps care five pumps six",
    ]


def test_a_heading_counts_as_one_more_sentence_of_a_mean() -> None:
    found, _, _ = columns()
    random = np.random.default_rng(0)
    vectors = random.normal(size=(6, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    tokens = np.array([3, 5, 2, 7, 1, 4])
    found |= {"vectors": vectors, "n_tokens": tokens}
    groups = Groups.by_change(np.array([0, 0, 0, 1, 1, 2]))
    headings = Headings.of(found)
    assert headings is not None
    query = random.normal(size=4).astype(np.float32)
    means = GroupMeans.of(found, groups, group_norms(found, groups, headings), headings)
    scores = means.scores(vectors @ query, headings.scores(query))
    some = means.scores_of(np.array([4, 1]), vectors @ query, headings.scores(query))
    np.testing.assert_allclose(some, scores[[4, 1]], rtol=1e-6)
    care = np.eye(4)[1]
    mean = (vectors[3:5] * tokens[3:5, None]).sum(axis=0) + WEIGHT * care
    np.testing.assert_allclose(scores[3:5], mean @ query / np.linalg.norm(mean), rtol=1e-5)
    plain = (vectors[:3] * tokens[:3, None]).sum(axis=0)
    np.testing.assert_allclose(scores[:3], plain @ query / np.linalg.norm(plain), rtol=1e-5)


def test_rows_without_the_columns_have_no_headings() -> None:
    assert Headings.of({"n_tokens": np.ones(2)}) is None
