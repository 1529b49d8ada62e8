"""A database takes the options of a search that an index in a folder takes."""

import pytest

from precise_rag.errors import InputError
from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

STORY = Document("story", "A cat sits.  A cat runs. It rained.\n\nThe sun rose. A cat sleeps.")


@pytest.fixture
def index(location):
    return DatabaseIndex.build([STORY], HashEncoder(), location=location, passages="paragraphs")


def test_neighbours_of_a_passage_are_merged(index):
    single = {c.text: c for c in index.search("cat", 3, returns="sentence")}
    assert set(single) == {"A cat sits.", "A cat runs.", "A cat sleeps."}
    merged = index.search("cat", 3, returns="sentence", merge_adjacent=True)
    assert {m.text for m in merged} == {"A cat sits.  A cat runs.", "A cat sleeps."}
    assert all(m.text == STORY.text[m.start : m.end] for m in merged)
    both = next(m for m in merged if m.start == 0)
    assert both.score == max(single["A cat sits."].score, single["A cat runs."].score)
    assert both.n_tokens == 6


async def test_an_asynchronous_search_finds_the_same(index):
    assert await index.asearch("cat sleeps", 3) == index.search("cat sleeps", 3)


def test_another_alpha_than_that_of_the_rows_is_refused(index):
    assert index.search("cat", 2, alpha=index.settings.alpha) == index.search("cat", 2)
    with pytest.raises(InputError, match=r"alpha is 0\.33.* in this collection, got 0\.9"):
        index.search("cat", alpha=0.9)
