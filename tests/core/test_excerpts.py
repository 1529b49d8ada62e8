from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.context import Passage, context_passages, shown_passages, source_of
from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.excerpts import LEAST_PIECE_TOKENS, PLAIN, Form, Order, excerpts_of, within
from precise_rag.facts import candidate_facts
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Excerpt, Selection, Stretch
from support.documents import read_document

MILL = read_document("mill.txt")


def sentences_of(text: str, doc_id: str = "mill") -> Selection:
    """Return a selection of nothing, with the text of a document around it."""
    stretch = split_into_sentences(Candidate(doc_id, 0, len(text), text, 0.0, "probability"))
    return Selection.of([]) if not stretch.sentences else Selection((), (stretch,))


def keeping(text: str, scores: dict[str, float], doc_id: str = "mill") -> Selection:
    """Return a selection that keeps the sentences that begin with these words, best first."""
    found = sentences_of(text, doc_id)
    kept = [
        replace(sentence, score=score)
        for sentence in found.stretches[0].sentences
        for words, score in scores.items()
        if sentence.text.strip().startswith(words)
    ]
    assert len(kept) == len(scores)
    kept.sort(key=lambda sentence: -sentence.score)
    reasons = ((one, True, f"worth {one.score}") for one in kept)
    return replace(Selection.of(reasons), stretches=found.stretches)


def texts(selection: Selection, order: Order = "document") -> list[str]:
    return [excerpt.text for excerpt in excerpts_of(selection, order)]


def test_neighbours_are_one_excerpt_whatever_white_space_is_between() -> None:
    selection = keeping(MILL, {"It grinds": 0.9, "Ada": 0.8, "The mill": 0.7})
    (excerpt,) = excerpts_of(selection)
    assert excerpt.text == MILL[: MILL.index(" It stops")] == MILL[excerpt.start : excerpt.end]
    assert excerpt.score == 0.9
    assert [d.reason for d in excerpt.sentences] == ["worth 0.7", "worth 0.8", "worth 0.9"]
    assert excerpt.reason == "worth 0.9; 2 more sentences came along"
    assert candidate_facts(excerpt, excerpt.reason)["sentences"][:2] == [
        {"start": 0, "end": 16, "score": 0.7, "reason": "worth 0.7"},
        {"start": 18, "end": 31, "score": 0.8, "reason": "worth 0.8"},
    ]
    assert excerpts_of(Selection.of([(excerpt, True, excerpt.reason)])) == (excerpt,)


def test_a_hole_is_filled_when_it_costs_less_than_one_more_piece() -> None:
    short = keeping(MILL, {"The mill": 0.9, "It grinds": 0.8})
    assert texts(short) == [MILL[: MILL.index(" It stops")]]
    (filled,) = excerpts_of(short)
    assert [d.candidate.text for d in filled.sentences] == ["The mill is old.", "It grinds rye."]
    long = keeping(MILL, {"It stops": 0.9, "The gate": 0.8})
    hole = MILL[MILL.index("\n\n    turn") : MILL.index(" The gate")]
    assert estimate_tokens(hole) > LEAST_PIECE_TOKENS
    assert texts(long) == ["It stops.", "The gate is shut."]
    dear = excerpts_of(long, piece_tokens=lambda piece: estimate_tokens(hole))
    assert [excerpt.text for excerpt in dear] == [MILL[MILL.index("It stops") :]]
    almost = excerpts_of(long, piece_tokens=lambda piece: estimate_tokens(hole) - 1)
    assert len(almost) == 2
    sentence = "The wheel that Ada built out of oak turns in the stream behind the house all the year round. "
    about = f"The mill is old. {sentence}It stops."
    assert texts(keeping(about, {"The mill": 0.9, "It stops": 0.8})) == [about[: about.index(" It") + 10]]
    below = '# Mill\n<a id="the-mill-of-oak"></a>\n\nIt is old.'
    assert texts(keeping(below, {"# Mill": 0.9, "It is": 0.8})) == [below], "a heading stays with its text"


def test_an_excerpt_that_begins_a_line_keeps_its_indent() -> None:
    (excerpt,) = excerpts_of(keeping(MILL, {"turn": 0.9}))
    assert excerpt.text.startswith("    turn = [\n        1,")
    assert excerpt.text == MILL[excerpt.start : excerpt.end]
    assert texts(keeping(MILL, {"Ada": 0.9})) == ["Ada built it."]
    text = "Turn it:\n\n    left\n  then right"
    places = ((0, 8), (14, 18), (21, len(text)))
    rows = tuple(Candidate("d", a, b, text[a:b], 0.5, "probability") for a, b in places)
    for row, expected in zip(rows, ("Turn it:", "    left", "  then right"), strict=True):
        kept = replace(Selection.keep_all([row]), stretches=(Stretch(text, rows),))
        assert texts(kept) == [expected]


def test_documents_stand_by_their_best_and_excerpts_in_the_order_of_the_text() -> None:
    mill = keeping(MILL, {"The gate": 0.9, "The mill": 0.2})
    shed = keeping("The shed is new.", {"The shed": 0.5}, "shed")
    both = replace(mill.then(shed), stretches=(*shed.stretches, *mill.stretches))
    kept = sorted((*mill.kept, *shed.kept), key=lambda piece: -piece.score)
    both = replace(Selection.keep_all(kept), stretches=both.stretches)
    assert texts(both) == ["The mill is old.", "The gate is shut.", "The shed is new."]
    assert texts(both, "score") == ["The gate is shut.", "The shed is new.", "The mill is old."]


@pytest.mark.parametrize(("file", "page"), [("source", "page"), ("file_path", "page_label")])
def test_pages_of_one_file_stand_together_in_its_order(file: str, page: str) -> None:
    pages = ("a.pdf", 10), ("b.pdf", 1), ("a.pdf", "9"), ("a.pdf", "iv"), ("b.pdf", 0)
    made = ((f"{name} {number}", {file: name, page: number}) for name, number in pages)
    kept = [Candidate(text, 0, 9, text, 0.5, "rank", metadata=metadata) for text, metadata in made]
    assert texts(Selection.keep_all(kept)) == ["a.pdf 9", "a.pdf 10", "b.pdf 0", "b.pdf 1", "a.pdf iv"]


def test_candidates_without_a_stretch_are_joined_only_where_their_texts_prove_it() -> None:
    def piece(text: str, score: float, start: int) -> Candidate:
        return Candidate("d", start, start + len(text), text, score, "cosine")

    overlapping = [piece("It grinds rye. It", 0.9, 10), piece("rye. It stops.", 0.5, 20)]
    assert texts(Selection.keep_all(overlapping)) == ["It grinds rye. It stops."]
    assert texts(Selection.keep_all([piece("b.", 0.9, 2), piece("a.", 0.5, 0)])) == ["a.b."]
    assert texts(Selection.keep_all([piece("b.", 0.9, 3), piece("a.", 0.5, 0)])) == ["a.", "b."]
    odd = [Candidate("d", 0, 9, text, 0.5, "cosine") for text in ("one thing", "other one")]
    assert texts(Selection.keep_all([odd[0], replace(odd[1], end=10)])) == ["other one", "one thing"]
    wrong = [piece("one thing", 0.5, 0), piece("other", 0.4, 3)]
    assert texts(Selection.keep_all(wrong)) == ["one thing", "other"]


@given(st.data())
def test_every_excerpt_is_a_slice_and_every_kept_sentence_is_in_one(data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet="Ab. \n\t-|`#:>", max_size=120))
    found = sentences_of(text)
    sentences = found.stretches[0].sentences if found.stretches else ()
    scores = data.draw(st.lists(st.floats(0, 1), min_size=len(sentences), max_size=len(sentences)))
    kept = [replace(s, score=x) for s, x in zip(sentences, scores, strict=True) if x > 0.5]
    ranked = sorted(kept, key=lambda one: -one.score)
    excerpts = excerpts_of(replace(Selection.keep_all(ranked), stretches=found.stretches))
    assert all(one.text == text[one.start : one.end] for one in excerpts)
    assert all(a.end <= b.start for a, b in pairwise(excerpts))
    held = [d.candidate.id for one in excerpts for d in one.sentences]
    assert sorted(held) == sorted(one.id for one in kept)
    assert all(isinstance(one, Excerpt) and one.score == one.best.candidate.score for one in excerpts)


@pytest.mark.parametrize("order", ["document", "score"])
def test_what_is_kept_fits_as_it_is_written(order: Order) -> None:
    scores = {"The mill": 0.9, "It stops": 0.8, "turn": 0.7, "The yard": 0.6, "The gate": 0.5}
    selection = keeping(MILL, scores)
    form = Form(lambda pieces: [f"{one.text}{' .' * 5}" for one in pieces], lambda piece: 5)
    sizes, numbers = [], []
    for max_tokens in (1, 12, 25, 40, 60, 200):
        fitting = within(selection, max_tokens, order, form)
        excerpts = excerpts_of(fitting, order, form.piece_tokens)
        written = sum(estimate_tokens(one.text) + 5 for one in excerpts)
        assert written == form.tokens(excerpts) <= max_tokens
        first = [one in fitting.kept for one in selection.kept].index(False) if len(fitting.kept) < 5 else 5
        assert fitting.kept[:first] == selection.kept[:first]
        assert all("(max_tokens)" in d.reason for d in fitting.decisions if not d.kept)
        sizes.append(written)
        numbers.append(len(fitting.kept))
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (0, 5)
    assert within(selection, None, order) is selection


def test_a_lead_in_fits_with_what_follows_it_or_not_at_all() -> None:
    text = f"Ada left {'home ' * 9}.\n\nThe wheel wears:\n\n- a seal of felt\n\nIt is old."
    selection = keeping(text, {"Ada": 0.9, "The wheel": 0.8, "- a seal": 0.5, "It is": 0.4})
    kept = {n: [one.text for one in within(selection, n).kept][1:] for n in (24, 20)}
    assert kept == {24: ["The wheel wears:", "- a seal of felt"], 20: ["It is old."]}


def test_what_stands_above_counts_once_for_each_section() -> None:
    selection = keeping(MILL, {"The mill": 0.9, "The gate": 0.8})
    above = Selection.of(
        (replace(d.candidate, above=("Mills", "Old")), True, "") for d in selection.decisions
    )
    plain, headed = excerpts_of(selection), excerpts_of(above)
    assert len(headed) == 2
    assert PLAIN.tokens(headed) - PLAIN.tokens(plain) == estimate_tokens("Mills > Old")


TEXT = "The mill is old. Ada built it.\n\nIt grinds rye. The yard is empty."


def piece(text: str, score: float, doc_id: str = "mill", **metadata: object) -> Candidate:
    start = TEXT.index(text)
    return Candidate(doc_id, start, start + len(text), text, score, "probability", metadata=metadata)


def passages(*pieces: Candidate, order: Order = "document") -> tuple[Passage, ...]:
    kept = sorted(pieces, key=lambda piece: -piece.score)
    return context_passages(Selection.keep_all(kept, "kept"), order)


def test_passages_are_the_excerpts_with_a_number_in_order() -> None:
    best, other = piece("The yard is empty.", 0.9), piece("Ada built it.", 0.2, "b", precise_pages=[0])
    first, second = passages(best, other)
    assert (first.number, first.doc_id, first.text, first.pieces) == (1, "mill", best.text, (best,))
    assert (second.number, second.start, second.end) == (2, other.start, other.end)
    assert second.metadata == {"precise_pages": [0]}
    kept = [piece("Ada built it.", 0.9), piece("The mill is old.", 0.8)]
    assert [p.text for p in passages(*kept, order="score")] == ["Ada built it.", "The mill is old."]


def test_a_heading_is_shown_where_another_one_begins_and_a_long_source_keeps_its_innermost() -> None:
    kept = [
        piece("The mill is old.", 0.9, title="Mills", header_path=["Old mills"]),
        piece("It grinds rye.", 0.8, title="Mills", header_path=["Old mills"]),
        piece("The yard is empty.", 0.7, "other"),
    ]
    assert shown_passages(passages(*kept)) == [
        ("The mill is old.", "Mills > Old mills"),
        ("It grinds rye.", ""),
        ("The yard is empty.", "untitled"),
    ]
    assert shown_passages(passages(piece("It grinds rye.", 0.8))) == [("It grinds rye.", "")]
    known = replace(piece("It grinds rye.", 0.9, title="Mills"), above=("Mills", "Grain"))
    assert shown_passages(passages(known)) == [("It grinds rye.", "Mills > Grain")]
    named = source_of(("x" * 300, "Oil"))
    assert len(named) == 200
    assert named.endswith("x > Oil")
