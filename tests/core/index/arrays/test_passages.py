"""Grouping of sentences into passages."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.index import DenseIndex, HybridIndex, SentenceContextIndex
from precise_rag.index.arrays.passages import Passages, passage_ids
from precise_rag.testing import HashEncoder
from precise_rag.types import Chunk, Document, SentenceTable


def table(n_tokens: list[int], paragraphs: list[int]) -> SentenceTable:
    n = len(n_tokens)
    spans = np.stack([np.arange(n), np.arange(n) + 1], axis=1)
    return SentenceTable("t", spans, np.array(paragraphs), np.array(n_tokens))


@pytest.mark.parametrize(
    ("passages", "expected"),
    [
        ("paragraphs", [0, 0, 1, 2, 2, 2, 3]),
        ("sentences", [0, 1, 2, 3, 4, 5, 6]),
        (3, [0, 0, 0, 1, 1, 1, 2]),
        ("10 tokens", [0, 0, 0, 1, 2, 2, 2]),  # the long third paragraph is cut between sentences
        ("14 tokens", [0, 0, 0, 1, 1, 1, 2]),
        ("1 tokens", [0, 1, 2, 3, 4, 5, 6]),
        ("100 tokens", [0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_passages_are_whole_paragraphs_or_whole_sentences(passages: Passages, expected: list[int]) -> None:
    sentences = table([4, 3, 3, 8, 3, 2, 4], [0, 0, 1, 2, 2, 2, 3])
    assert passage_ids(Document("t", "x" * 7), sentences, passages).tolist() == expected


@dataclass(frozen=True)
class Pairs:
    """A segmenter: two sentences per chunk."""

    name: str = "pairs"

    def segment(self, text: Document, table: SentenceTable | None = None) -> list[Chunk]:
        assert table is not None
        starts = [*table.spans[::2, 0].tolist(), len(text.text)]
        return [Chunk(text.id, a, b, text.text[a:b]) for a, b in pairwise(starts)]


def test_a_segmenter_makes_passages_and_chunks() -> None:
    document = Document("a", "One cat. Two dogs. Three owls.")
    index = SentenceContextIndex.build([document], HashEncoder(), passages=Pairs())
    passages = {c.text: c.passage for c in index.search("cat", 3)}
    assert passages == {"One cat.": (0, 18), "Two dogs.": (0, 18), "Three owls.": (19, 30)}
    chunks = DenseIndex.build([document], HashEncoder(), chunks=Pairs()).search("cat", 3)
    assert [c.text for c in chunks] == ["One cat. Two dogs.", "Three owls."]


def test_other_values_are_refused_by_the_name_of_the_setting() -> None:
    with pytest.raises(InputError, match=r"chunks must be 'sentences', .*, got 0"):
        DenseIndex.build([], HashEncoder(), chunks=0)
    with pytest.raises(InputError, match=r"passages must be .*, got ''"):
        SentenceContextIndex.build([], HashEncoder(), passages="")
    with pytest.raises(InputError, match=r"surroundings must be .*, got -1"):
        HybridIndex.build([], HashEncoder(), surroundings=-1)
