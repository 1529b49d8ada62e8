"""Hybrid search: its scores by hand, and the weight of the dense scores."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.index import HybridIndex
from precise_rag.index.ranking import min_max
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

STORY = Document("story", "A cat sits. A cat runs. It rained.\n\nThe sun rose. A cat sleeps.")


def test_scores_follow_from_their_parts() -> None:
    """Means of three cosines, means of three BM25 scores, fused with weights 0.6 and 0.4."""
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs", surroundings="400 tokens")
    found = sorted(index.search("cat sleeps", 5, returns="sentence"), key=lambda c: c.start)
    vectors = HashEncoder().encode([c.text for c in found])
    query = HashEncoder().encode_queries(["cat sleeps"])[0]
    weights = np.array([c.n_tokens for c in found])

    def mean_cosine(first: int, last: int) -> float:
        mean = (vectors[first:last] * weights[first:last, None]).sum(axis=0)
        return float(mean @ query / np.linalg.norm(mean))

    wide = mean_cosine(0, 5)
    for row, candidate in enumerate(found):
        passage = mean_cosine(0, 3) if row < 3 else mean_cosine(3, 5)
        assert candidate.scores["core"] == pytest.approx(vectors[row] @ query, abs=1e-5)
        expected = (vectors[row] @ query + passage + wide) / 3
        assert candidate.scores["dense"] == pytest.approx(expected, abs=1e-5)
    dense = np.array([c.scores["dense"] for c in found], dtype=np.float32)
    bm25 = (
        min_max(np.array([c.scores["bm25"] for c in found], dtype=np.float32))
        + min_max(np.array([c.scores["bm25_passage"] for c in found], dtype=np.float32))
    ) / 3
    fused = 0.6 * min_max(dense) + 0.4 * min_max(bm25)
    assert [c.score for c in found] == pytest.approx(fused.tolist(), abs=1e-5)


def test_passages_are_found_when_some_rows_are_outside_the_pool() -> None:
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs", pool=1)
    found = index.search("cat sleeps", 5, returns="passage")
    assert found[0].text == "The sun rose. A cat sleeps."


@pytest.mark.parametrize("wanted", [None, {"kind": "a"}])
def test_a_large_index_scores_meaning_and_words_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch, wanted: dict[str, str] | None
) -> None:
    documents = [Document(f"{n}", f"{STORY.text} Cat {n} eats.", {"kind": "ab"[n % 2]}) for n in range(6)]
    index = HybridIndex.build(documents, HashEncoder())
    expected = index.search("cat sleeps", 5, filter=wanted)
    monkeypatch.setattr("precise_rag.index.hybrid._LEAST_ROWS", 1)
    assert index.search("cat sleeps", 5, filter=wanted) == expected


class OddEncoder(HashEncoder):
    """Tells sentences with the word "odd" from the rest, and nothing more."""

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        sides = [int("odd" in text.lower()) for text in queries]
        return np.eye(2, self.dimension, dtype=np.float32)[sides]


def scored(
    n_sentences: int, encoder: HashEncoder, question: str = "Which odd house?", **options: float | bool
) -> dict[str, float]:
    """The score of each sentence for a question."""
    facts = [f"{'Odd' if i % 2 else 'Even'} house w{i} stands here." for i in range(n_sentences)]
    index = HybridIndex.build([Document("street", "\n\n".join(facts))], encoder, **options)
    found = index.search(question, n_sentences, returns="sentence")
    return {candidate.text: candidate.score for candidate in found}


def test_an_encoder_that_tells_nothing_apart_has_no_weight() -> None:
    """Half of the sentences have the best cosine, which is one standard deviation above the mean."""
    adapted = scored(120, OddEncoder())
    assert adapted == pytest.approx(scored(120, OddEncoder(), dense_weight=0.0))
    assert adapted != pytest.approx(scored(120, OddEncoder(), adaptive=False))


def test_the_weight_is_not_adapted_among_few_sentences() -> None:
    assert scored(90, OddEncoder()) == pytest.approx(scored(90, OddEncoder(), adaptive=False))


def test_an_encoder_that_finds_something_keeps_its_whole_weight() -> None:
    adapted = scored(120, HashEncoder(), "Who lives in w40?")
    assert adapted == pytest.approx(scored(120, HashEncoder(), "Who lives in w40?", adaptive=False))
    assert adapted != pytest.approx(scored(120, HashEncoder(), "Who lives in w40?", dense_weight=0.0))


@pytest.mark.parametrize(("name", "value"), [("dense_weight", 1.5), ("pool", 0), ("alpha", -0.1)])
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{name} must be .*, got {value}"):
        HybridIndex.build([], HashEncoder(), **{name: value})


PUMPS = [
    Document("m7", "Service it every two years. Change the seal then.", {"title": "Borealis M-7 pump"}),
    Document("k2", "Service it every month. Oil the shaft then.", {"title": "Austral K-2 pump"}),
]
QUESTION = "How often should I service the Borealis M-7 pump?"


@pytest.mark.parametrize("dense_weight", [0.0, 0.6, 1.0])
def test_what_only_the_title_says_is_found(dense_weight: float) -> None:
    index = HybridIndex.build(PUMPS, HashEncoder(), dense_weight=dense_weight)
    best = index.search(QUESTION, 1, returns="sentence")[0]
    assert best.doc_id == "m7"
    assert PUMPS[0].text[best.start : best.end] == best.text


def test_without_headings_titles_are_not_read() -> None:
    plain = [Document(document.id, document.text) for document in PUMPS]
    titled = HybridIndex.build(PUMPS, HashEncoder(), headings=False).search(QUESTION, 4)
    untitled = HybridIndex.build(plain, HashEncoder()).search(QUESTION, 4)
    assert [(c.id, pytest.approx(c.score)) for c in titled] == [(c.id, c.score) for c in untitled]


def test_a_new_title_is_read_and_other_metadata_encode_nothing() -> None:
    class Counting(HashEncoder):
        seen = 0

        def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
            self.seen += len(texts)
            return super().encode(texts)

    index = HybridIndex.build(PUMPS, encoder := Counting())
    encoded = encoder.seen
    index.add([Document(d.id, d.text, {**d.metadata, "shelf": 3}) for d in PUMPS])
    assert encoder.seen == encoded
    swapped = [Document(d.id, d.text, o.metadata) for d, o in zip(PUMPS, PUMPS[::-1], strict=True)]
    index.add(swapped)
    assert encoder.seen == 2 * encoded
    assert index.search(QUESTION, 1)[0].doc_id == "k2"


def test_titles_are_saved_and_deleted_with_their_documents(tmp_path: Path) -> None:
    index = HybridIndex.build([*PUMPS, STORY], HashEncoder())
    index.delete(["k2"])
    before = [(c.id, c.score) for c in index.search(QUESTION, 9)]
    index.save(tmp_path / "index")
    loaded = HybridIndex.load(tmp_path / "index", HashEncoder())
    assert [(c.id, pytest.approx(c.score)) for c in loaded.search(QUESTION, 9)] == before
    loaded.add([PUMPS[1]])
    built = HybridIndex.build([PUMPS[0], STORY, PUMPS[1]], HashEncoder())
    assert [c.id for c in loaded.search(QUESTION, 9)] == [c.id for c in built.search(QUESTION, 9)]


GUIDE = Document(
    "guide",
    "# Pumps\n\nThere are two of them.\n\n## Care\n\nOil the shaft. Change the seal.\n\n"
    "# Lamps\n\nThey are lit at dusk.\n",
    {"title": "Handbook"},
)


def above(index: HybridIndex) -> dict[str, tuple[str, ...]]:
    return {c.text: c.above for c in index.search("oil the shaft of the pump", 20, returns="sentence")}


def test_candidates_know_the_title_and_the_headings_above_them(tmp_path: Path) -> None:
    index = HybridIndex.build([*PUMPS, GUIDE, STORY], HashEncoder())
    found = above(index)
    assert found["Oil the shaft."] == found["Change the seal."] == ("Handbook", "Pumps", "Care")
    assert found["There are two of them."] == ("Handbook", "Pumps")
    assert found["They are lit at dusk."] == ("Handbook", "Lamps")
    assert found["Change the seal then."] == ("Borealis M-7 pump",)
    assert not any(found[text] for text in found if text in STORY.text)
    index.save(tmp_path / "index")
    loaded = HybridIndex.load(tmp_path / "index", HashEncoder())
    assert above(loaded) == found
    loaded.delete(["k2"])
    loaded.add([Document("late", "The jetty is closed.", {"title": "Notices"})])
    assert above(loaded)["The jetty is closed."] == ("Notices",)
    assert above(loaded)["Oil the shaft."] == ("Handbook", "Pumps", "Care")
    stretches = index.neighbours(index.search("oil the shaft", 1, returns="sentence"), 1)
    assert {s.above for stretch in stretches for s in stretch.sentences} <= set(found.values())
