"""Hybrid search by hand; what a search returns, what a filter hides from its scores, and what is around."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.index import DatabaseIndex, HybridIndex, SentenceContextIndex
from precise_rag.index.bm25 import BM25Matrix, BM25Settings, bm25_scores, counted_words, words_found
from precise_rag.index.hybrid import HybridSettings
from precise_rag.index.ranking import scaled
from precise_rag.index.words import word_columns, word_numbers
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

STORY = Document("story", "A cat sits. A cat runs. It rained.\n\nThe sun rose. A cat sleeps.")
HEADED = Document(
    "headed",
    "A cat sits. A cat runs.\n\n# Naps\n\nThe sun rose. A dog sleeps.\n\n## Cat\n\nOn a mat. In bed.",
    {"title": "A cat at home"},
)


def bm25_of(texts: list[str], query: str) -> tuple[list[float], float]:
    """The scores whose formula `test_scoring.py` checks, and what a text with each word once has."""
    matrix = BM25Matrix(counted_words(word_columns(texts, "english")))
    terms = np.unique(word_numbers(query, "english"))
    (scores,), weights = bm25_scores([matrix], [None], terms, BM25Settings(k1=1.5, b=0.75))
    return scores.tolist(), float(weights.sum()) / 2.5


@pytest.mark.parametrize("document", [STORY, HEADED], ids=["plain", "headed"])
def test_scores_follow_from_their_parts(document: Document) -> None:
    """Means of three cosines, means of three BM25 scores, fused with weights 0.6 and 0.4 of the words found.

    What stands above the first sentence counts as one more, of 12 tokens; it is encoded once.
    """
    encoder = HashEncoder()
    index = HybridIndex.build([document], encoder, passages=4, surroundings="400 tokens")
    assert len(encoder.calls) == len(set(encoder.calls))
    found = sorted(index.search("cat sleeps", 99, returns="sentence"), key=lambda c: c.start)
    vectors = encoder.encode([c.text for c in found])
    (query,) = encoder.encode_queries(["cat sleeps"])

    def mean_cosine(rows: list[int]) -> float:
        mean = sum(vectors[row] * found[row].n_tokens for row in rows)
        if titles := found[rows[0]].above:
            mean = mean + 12 * encoder.encode([" > ".join(titles)])[0]
        return float(mean @ query / np.linalg.norm(mean))

    passages: dict[Any, list[int]] = {}
    texts: dict[Any, str] = defaultdict(str)
    for row, candidate in enumerate(found):
        before = passages.setdefault(candidate.passage, [])
        if not before or found[before[-1]].above != candidate.above:
            texts[candidate.passage] += f" {' '.join(candidate.above)} "
        texts[candidate.passage] += f" {candidate.text} "
        before.append(row)
    by_word = dict(zip(texts, bm25_of(list(texts.values()), "cat sleeps")[0], strict=True))
    own_words, _ = bm25_of([c.text for c in found], "cat sleeps")
    (all_words,), complete = bm25_of([" ".join(texts.values())], "cat sleeps")
    wide = mean_cosine(list(range(len(found))))
    for row, candidate in enumerate(found):
        passage = mean_cosine(passages[candidate.passage])
        assert candidate.scores["bm25_passage"] == pytest.approx(by_word[candidate.passage], abs=1e-5)
        assert candidate.scores["bm25"] == pytest.approx(own_words[row], abs=1e-5)
        assert candidate.scores["core"] == pytest.approx(vectors[row] @ query, abs=1e-5)
        expected = (vectors[row] @ query + passage + wide) / 3
        assert candidate.scores["dense"] == pytest.approx(expected, abs=1e-5)
    dense, bm25, bm25_passage = (
        scaled(np.array([c.scores[name] for c in found], dtype=np.float32))
        for name in ("dense", "bm25", "bm25_passage")
    )
    fused = 0.6 * dense + 0.4 * min(all_words / complete, 1) * scaled((bm25 + bm25_passage) / 3)
    assert [c.score for c in found] == pytest.approx(fused.tolist(), abs=1e-5)


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


def scored(n_sentences: int, **options: float | bool) -> dict[str, float]:
    """The score of each sentence for a question, the best 1.

    Half of the sentences have the best cosine, one standard deviation above the mean.
    """
    facts = [f"{'Odd' if i % 2 else 'Even'} house w{i} stands here." for i in range(n_sentences)]
    index = HybridIndex.build([Document("street", "\n\n".join(facts))], OddEncoder(), **options)
    found = index.search("Which odd house?", n_sentences, returns="sentence")
    return {candidate.text: candidate.score / found[0].score for candidate in found}


def test_an_encoder_that_tells_nothing_apart_has_no_weight_but_not_among_few() -> None:
    for n_sentences, is_adapted in ((120, True), (90, False)):
        adapted = scored(n_sentences)
        assert (adapted == pytest.approx(scored(n_sentences, dense_weight=0.0))) is is_adapted
        assert (adapted == pytest.approx(scored(n_sentences, adaptive=False))) is not is_adapted


def test_codes_are_first_where_few_have_them_and_words_count_little_where_most_are_missing() -> None:
    words = ["printer", "invoices", "evening", "colleague", "window", "button"]
    texts = [" ".join(three) + "." for three in combinations(words, 3)]
    question = f"I saw E4266 while {' '.join(words)}"
    for n_texts, is_first in ((1, True), (3, True), (4, False)):
        coded = [Document(f"code{n}", f"If E4266 is shown, tray {n} is empty.") for n in range(n_texts)]
        index = HybridIndex.build([*(Document(text, text) for text in texts), *coded], HashEncoder())
        assert ("code" in index.search(question, 1)[0].doc_id) is is_first
    found = words_found(np.array([0.25, 0.0]), np.array([1.0, 1.5]), BM25Settings(k1=1.5))
    assert found == pytest.approx(0.25)  # a text of the mean length with each word once has 2.5 / (1 + 1.5)
    assert HybridSettings().weights(np.zeros(10), 1.0, found) == pytest.approx((0.6, 0.4 * found))


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
    index = HybridIndex.build(PUMPS, encoder := HashEncoder())
    encoded = len(encoder.calls)
    index.add([Document(d.id, d.text, {**d.metadata, "shelf": 3}) for d in PUMPS])
    assert len(encoder.calls) == encoded
    swapped = [Document(d.id, d.text, o.metadata) for d, o in zip(PUMPS, PUMPS[::-1], strict=True)]
    index.add(swapped)
    assert len(encoder.calls) == 2 * encoded
    assert index.search(QUESTION, 1)[0].doc_id == "k2"


GUIDE = Document(
    "guide",
    "# Pumps\n\nThere are two of them.\n\n## Care\n\nOil the shaft. Change the seal.\n\n"
    "# Lamps\n\nThey are lit at dusk.\n",
    {"title": "A > B/C"},
)


def test_candidates_know_the_title_and_the_headings_above_them(tmp_path: Path) -> None:
    """Also those that were saved, and added or left after others were deleted."""

    def found(index: HybridIndex) -> dict[str, tuple[Any, tuple[str, ...]]]:
        candidates = index.search("oil the shaft of the pump", 20, returns="sentence")
        return {c.text: (pytest.approx(c.score), c.above) for c in candidates}

    index = HybridIndex.build([*PUMPS, GUIDE, STORY], HashEncoder())
    with pytest.MonkeyPatch.context() as patched:  # the build has read them
        patched.setattr("precise_rag.index.headings.read_structure", None)
        above = {text: its for text, (_, its) in found(index).items()}
    assert above["Oil the shaft."] == above["Change the seal."] == ("A > B/C", "Pumps", "Care")
    assert above["There are two of them."] == ("A > B/C", "Pumps")
    assert above["They are lit at dusk."] == ("A > B/C", "Lamps")
    assert above["Change the seal then."] == ("Borealis M-7 pump",)
    assert not any(above[text] for text in above if text in STORY.text)
    index.save(tmp_path / "index")
    loaded = HybridIndex.load(tmp_path / "index", HashEncoder())
    assert found(loaded) == found(index)
    late = Document("late", "The jetty is closed.", {"title": "Notices"})
    loaded.delete(["k2"])
    loaded.add([late])
    built = HybridIndex.build([PUMPS[0], GUIDE, STORY, late], HashEncoder())
    assert found(loaded) == found(built)
    assert found(loaded)["The jetty is closed."][1] == ("Notices",)
    stretches = index.neighbours(index.search("oil the shaft", 1, returns="sentence"), 1)
    assert {s.above for stretch in stretches for s in stretch.sentences} <= set(above.values())


def test_a_passage_has_the_score_of_its_best_sentence_and_is_found_if_rows_are_outside_the_pool() -> None:
    index = SentenceContextIndex.build([STORY], HashEncoder())
    sentence = index.search("cat runs", 1)[0]
    passage = index.search("cat runs", 5, returns="passage")
    assert [p.text for p in passage] == ["A cat sits. A cat runs. It rained.", "The sun rose. A cat sleeps."]
    assert passage[0].score == pytest.approx(sentence.score)
    assert [p.n_tokens for p in passage] == [8, 6]
    small_pool = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs", pool=1)
    assert small_pool.search("cat sleeps", 5, returns="passage")[0].text == "The sun rose. A cat sleeps."


def test_mixed_returns_the_passage_of_the_best_sentence_and_then_single_sentences() -> None:
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs")
    mixed = index.search("cat sleeps", 3)
    assert mixed[0].text == "The sun rose. A cat sleeps."
    assert mixed[0].n_tokens == 6
    assert {m.text for m in mixed[1:]} == {"A cat sits.", "A cat runs."}
    assert [m.score for m in mixed] == sorted((m.score for m in mixed), reverse=True)
    assert [m.text for m in index.search("cat sleeps", 1)] == [mixed[0].text]


MINE = [
    Document(f"mine{i}", f"The {animal} sleeps on the mat. It eats {food} every day.", {"tenant": "me"})
    for i, (animal, food) in enumerate([("cat", "fish"), ("dog", "meat"), ("cow", "grass")])
]
THEIRS = [
    Document(f"theirs{i}", "Which cat eats fish? The cat sleeps. " * (i + 1), {"tenant": "them"})
    for i in range(30)
]


def made(kind: Any, documents: list[Document], request: pytest.FixtureRequest, **settings: Any) -> Any:
    if kind is DatabaseIndex:
        settings["location"] = request.getfixturevalue("new_location")()
    return kind.build(documents, HashEncoder(), **settings)


def found(index: Any, **options: Any) -> dict[tuple[str, str], float]:
    """The scores of what is found, and those that they are made of."""
    candidates = index.search("Which cat eats fish?", 100, **options)
    return {(c.id, name): s for c in candidates for name, s in {"score": c.score, **c.scores}.items()}


IN_DATABASE = pytest.param(DatabaseIndex, marks=[pytest.mark.long, pytest.mark.services])


@pytest.mark.parametrize("kind", [HybridIndex, IN_DATABASE])
def test_shared_statistics_are_word_counts_alone(kind: Any, request: pytest.FixtureRequest) -> None:
    """Words that others use are worth less; ranges of scores are those of the documents that match."""
    index = made(kind, [*THEIRS, *MINE], request, adaptive=False)
    alone = found(made(kind, MINE, request, adaptive=False), returns="sentence")
    shared = found(index, filter={"tenant": "me"}, returns="sentence")
    assert shared.keys() == alone.keys()
    for key, score in alone.items():
        if key[1] == "dense":
            assert shared[key] == pytest.approx(score, rel=1e-4, abs=1e-5)
    most, most_alone = (max(s for key, s in each.items() if key[1] == "bm25") for each in (shared, alone))
    assert most < most_alone
    assert max(s for key, s in shared.items() if key[1] == "score") == pytest.approx(1.0, abs=0.25)
    assert np.isfinite(list(shared.values())).all()


TEXT = "One is here. Two is here.\n\nThree is here. Four is here. Five is here. Six is here."


def test_neighbours_are_the_sentences_of_the_index_and_others_have_none():
    for kind in (HybridIndex, SentenceContextIndex):
        index = kind.build([Document("a", "Zero."), Document("b", TEXT, {"page": 1})], HashEncoder())
        rows = {c.text.split()[0]: c for c in index.search("Three", 10, returns="sentence")}
        (stretch,) = index.neighbours([rows["Three"]], 1)
        assert [s.text for s in stretch.sentences] == ["Two is here.", "Three is here.", "Four is here."]
        assert stretch.text == "Two is here.\n\nThree is here. Four is here."
        assert all(TEXT[s.start : s.end] == s.text and s.metadata == {"page": 1} for s in stretch.sentences)
        for names, met in (
            (("Two", "Five"), ["One Two Three Four Five Six"]),
            (("One", "Six"), ["One Two", "Five Six"]),
        ):
            stretches = index.neighbours([rows[name] for name in names], 1)
            assert [" ".join(s.text.split()[0] for s in one.sentences) for one in stretches] == met
        (first,) = index.search("Three", 1, returns="sentence")
        assert index.neighbours([replace(first, doc_id="other"), replace(first, end=first.end - 1)], 2) == []
        assert index.neighbours([], 2) == []
