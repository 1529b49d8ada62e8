"""Encoders that return what are no vectors: one error, and nothing changes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.candidate_filters import RedundancyFilter
from precise_rag.encoders import FrameworkEncoder
from precise_rag.errors import EmptyIndexError, PreciseRagError
from precise_rag.index import DatabaseIndex, HybridIndex, weighted_chunks, weighted_sentences
from precise_rag.segmentation import GreedySegmenter
from precise_rag.testing import HashEncoder
from precise_rag.types import Candidate, Document
from support.saved_indexes import BUILD, build, content

WRONG: dict[str, Callable[[Any], Any]] = {
    "fewer rows": lambda rows: rows[:-1],
    "more rows": lambda rows: np.concatenate([rows, rows[:1]]),
    "narrower": lambda rows: rows[:, :-1],
    "one infinity": lambda rows: np.where(
        np.arange(rows.size).reshape(rows.shape) == rows.size - 1, np.inf, rows
    ),
    "none": lambda rows: None,
    "a generator": lambda rows: iter(rows.tolist()),
}
"""One of each kind; `tests/core/test_encoded.py` has more."""
LAMP = (Document("lamp", "The lamp is lit at dusk. Ilse keeps it."),)
DOCUMENTS = (
    Document("new", "Boats leave at nine. The quay is wet.\n\nNobody swims."),
    Document("lamp", "It is out."),
)
HITS = [
    Candidate(f"d{i}", 0, 30, f"The lamp is lit at dusk again{mark}", score=1 - i, score_scale="cosine")
    for i, mark in enumerate(".!")
]


class Wrong(HashEncoder):
    """An encoder whose vectors of documents, of queries or of both are changed; as right as any at first."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__(8)
        self.change, self.documents, self.queries = change, False, False

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> Any:
        rows = HashEncoder(8).encode(texts)
        return self.change(rows) if self.documents else rows

    def encode_queries(self, queries: Sequence[str]) -> Any:
        rows = HashEncoder(8).encode(queries)
        return self.change(rows) if self.queries else rows


class Embeddings:
    """The same as an embedding object of a framework. query: what it returns for a query."""

    model_name = "hash-8"

    def __init__(self, encoder: Wrong, query: Any = None) -> None:
        self.encoder, self.query = encoder, query

    def embed_documents(self, texts: list[str]) -> Any:
        return self.encoder.encode(texts)

    def embed_query(self, text: str) -> Any:
        return self.query

    async def aembed_query(self, text: str) -> Any:
        return self.query


@pytest.fixture(params=WRONG)
def wrong(request: pytest.FixtureRequest) -> Wrong:
    return Wrong(WRONG[request.param])


@pytest.mark.parametrize("kind", [*BUILD, pytest.param("database", marks=pytest.mark.services)])
async def test_an_index_stays_as_it_was(
    kind: str, wrong: Wrong, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    in_database = kind == "database"
    location = request.getfixturevalue("new_location") if in_database else None
    places = [{"location": location()} for _ in range(2)] if location else [{}, {}]
    index: Any = DatabaseIndex.build(LAMP, wrong, **places[0]) if in_database else build(kind)
    if not in_database:
        index.encoder = wrong
    before = content(index)
    wrong.documents = True
    for use in (lambda: index.add(DOCUMENTS), lambda: type(index).build(DOCUMENTS, wrong, **places[1])):
        with pytest.raises(PreciseRagError):
            use()
    assert content(index) == before
    wrong.documents = False
    if not in_database:
        index.save(tmp_path / "index")
        assert content(type(index).load(tmp_path / "index", wrong)) == before
    wrong.queries = True
    with pytest.raises(PreciseRagError):
        index.search("lamp")
    with pytest.raises(PreciseRagError):
        await index.asearch("lamp")
    wrong.queries = False
    index.add(DOCUMENTS)
    assert index.search("boats")


@pytest.mark.parametrize("vector", [None, [], [1.0] * 7, ["a"] * 8, [[1.0] * 8], {1: 2}, 7])
async def test_queries_by_the_embeddings_of_a_framework_raise_one_error(vector: Any) -> None:
    index = HybridIndex(FrameworkEncoder(embeddings := Embeddings(Wrong(lambda rows: rows), [1.0] * 8)))
    index.add(LAMP)
    assert len(await index.asearch(" ")) == 1
    embeddings.query = vector
    with pytest.raises(EmptyIndexError):  # and asks for no vector
        await HybridIndex(index.encoder).asearch("lamp")
    with pytest.raises(PreciseRagError):
        index.search("lamp")
    with pytest.raises(PreciseRagError):
        await index.asearch("lamp")


def test_segmenters_filters_exports_and_embeddings_raise_one_error(wrong: Wrong) -> None:
    framework = HybridIndex.build(LAMP, FrameworkEncoder(Embeddings(wrong)))
    wrong.documents = True
    for use in (
        lambda: GreedySegmenter(wrong).segment(DOCUMENTS[0]),
        lambda: list(GreedySegmenter(wrong).segment_many(DOCUMENTS)),
        lambda: RedundancyFilter(encoder=wrong).filter(HITS),
        lambda: list(weighted_sentences(DOCUMENTS, wrong)),
        lambda: list(weighted_chunks(DOCUMENTS, wrong)),
        lambda: framework.add(DOCUMENTS),
    ):
        with pytest.raises(PreciseRagError):
            use()
