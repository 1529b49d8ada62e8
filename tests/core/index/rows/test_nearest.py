"""faiss behind the indexes of sentences: the same results as without it, through all changes."""

import random
from pathlib import Path
from typing import Any

import pytest

from precise_rag.errors import IndexFormatError, InputError
from precise_rag.index import (
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    load_index,
)
from precise_rag.index.arrays.faiss_rows import FaissBackend, FaissRows
from precise_rag.index.rows import nearest, segments
from precise_rag.testing import HashEncoder
from precise_rag.types import Candidate, Document, FloatArray

KINDS = (SentenceContextIndex, HybridIndex, WordSentenceIndex)
QUERIES = ("Which heron waits at the pier?", "a lamp and seven boats", "Who mends the red nets?")
_WORDS = [
    "heron",
    "lamp",
    "pier",
    "boat",
    "net",
    "tide",
    "keeper",
    "harbour",
    "red",
    "seven",
    "waits",
    "mends",
    "lights",
    "the",
    "a",
    "of",
    "storm",
    "gull",
]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets segments of the tests have a faiss index."""
    faiss = pytest.importorskip("faiss")
    faiss.omp_set_num_threads(1)
    monkeypatch.setattr(nearest, "EXACT_ROWS", 40)
    monkeypatch.setattr(segments, "SMALL", 0)


def story(number: int) -> Document:
    """A document of some paragraphs."""
    drawn = random.Random(number)
    paragraphs = [
        " ".join(f"{' '.join(drawn.choices(_WORDS, k=8)).capitalize()}." for _ in range(drawn.randint(1, 6)))
        for _ in range(4)
    ]
    return Document(f"story {number}", "\n\n".join(paragraphs), {"even": number % 2 == 0, "number": number})


STORIES = [story(number) for number in range(40)]


def found(index: DocumentIndex, query: str, **options: Any) -> dict[str, float]:
    return {candidate.id: candidate.score for candidate in index.search(query, 10, **options)}


def assert_same(left: DocumentIndex, right: DocumentIndex, **options: Any) -> None:
    for query in QUERIES:
        expected = found(right, query, **options)
        assert sorted(found(left, query, **options).values()) == pytest.approx(
            sorted(expected.values()), abs=1e-4
        )


def uses_faiss(index: DocumentIndex) -> bool:
    return any(part.segment.near is not None for part in index._rows.parts)


@pytest.mark.parametrize("kind", KINDS)
def test_flat_finds_what_numpy_finds_through_all_changes(kind: type[DocumentIndex], tmp_path: Path) -> None:
    by_faiss = kind.build(STORIES[:30], HashEncoder(), backend="faiss")
    by_numpy = kind.build(STORIES[:30], HashEncoder())
    assert_same(by_faiss, by_numpy)
    assert uses_faiss(by_faiss)
    for index in (by_faiss, by_numpy):
        index.add([STORIES[30], Document("story 3", STORIES[31].text), Document("story 4", "", {"even": 1})])
        index.delete(["story 7", "story 8"])
    assert_same(by_faiss, by_numpy)
    for wanted in ({"even": True}, {"number": {"$lt": 3}}, {"number": 99}, {"number": {"$ne": 5}}):
        assert_same(by_faiss, by_numpy, filter=wanted)
    by_faiss.save(tmp_path / "index")
    assert_same(load_index(tmp_path / "index", HashEncoder()), by_numpy)
    assert_same(load_index(tmp_path / "index", HashEncoder(), backend="numpy"), by_numpy)


@pytest.mark.parametrize("kind", [SentenceContextIndex, HybridIndex])
def test_other_returns_and_another_alpha_find_the_same(kind: type[DocumentIndex]) -> None:
    by_faiss = kind.build(STORIES, HashEncoder(), backend="faiss")
    by_numpy = kind.build(STORIES, HashEncoder())
    for options in ({"returns": "passage"}, {"returns": "mixed"}, {"alpha": 0.9}, {"merge_adjacent": True}):
        assert_same(by_faiss, by_numpy, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", ["faiss:HNSW16@efSearch=200", "faiss:IVF4,Flat@nprobe=4", "faiss:SQ8"])
def test_approximate_indexes_find_nearly_the_same(kind: type[DocumentIndex], backend: str) -> None:
    by_faiss = kind.build(STORIES, HashEncoder(), backend=backend)
    by_numpy = kind.build(STORIES, HashEncoder())
    for query in QUERIES:
        least = min(found(by_numpy, query).values())
        assert sum(score >= least - 0.02 for score in found(by_faiss, query).values()) >= 8


def test_a_saved_faiss_index_is_used_if_trusted_and_made_likewise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = SentenceContextIndex.build(STORIES, HashEncoder(), backend="faiss:HNSW16@efSearch=200")
    index.save(tmp_path)
    built: list[FaissBackend] = []
    of = FaissRows.of

    def counted(vectors: FloatArray, backend: FaissBackend) -> FaissRows:
        built.append(backend)
        return of(vectors, backend)

    monkeypatch.setattr(FaissRows, "of", counted)
    trusting = SentenceContextIndex.load(tmp_path, HashEncoder(), trusted=True)
    assert_same(trusting, index)
    assert not built
    assert_same(SentenceContextIndex.load(tmp_path, HashEncoder()), index)
    assert built == [FaissBackend("HNSW16", "efSearch=200")]
    other = SentenceContextIndex.load(tmp_path, HashEncoder(), trusted=True, alpha=0.9)
    assert_same(other, SentenceContextIndex.build(STORIES, HashEncoder(), alpha=0.9))
    assert len(built) == 2
    SentenceContextIndex.load(tmp_path, HashEncoder(), trusted=True, backend="faiss:Flat")
    assert built[-1] == FaissBackend("Flat")
    with pytest.raises(InputError, match="search parameters 'nonsense=1'"):
        SentenceContextIndex.load(tmp_path, HashEncoder(), trusted=True, backend="faiss:HNSW16@nonsense=1")
    (saved,) = tmp_path.glob("data-*/faiss.npy")
    saved.write_bytes(saved.read_bytes()[:200])
    with pytest.raises(IndexFormatError, match="damaged"):
        SentenceContextIndex.load(tmp_path, HashEncoder(), trusted=True)


@pytest.mark.parametrize("kind", KINDS)
def test_what_faiss_cannot_do_is_one_error(
    kind: type[DocumentIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    monkeypatch.delattr(faiss, "index_cpu_to_all_gpus", raising=False)
    with pytest.raises(InputError, match="has no GPU support"):
        kind(HashEncoder(), backend="faiss-gpu:Flat")
    with pytest.raises(InputError, match="faiss cannot build 'Nonsense'"):
        kind.build(STORIES, HashEncoder(), backend="faiss:Nonsense").search("lamp")
    with pytest.raises(InputError, match="backend must be"):
        kind(HashEncoder(), backend="faiss:")


def test_a_candidate_has_the_scores_that_it_has_without_faiss() -> None:
    def scores(backend: str) -> list[Candidate]:
        return HybridIndex.build(STORIES, HashEncoder(), backend=backend).search(QUERIES[0], 5)

    for with_faiss, without in zip(scores("faiss"), scores("numpy"), strict=True):
        assert with_faiss.scores == pytest.approx(without.scores, abs=1e-4)
