from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag import stems
from precise_rag.sharing import Said, in_turns, plain_text, share_of, share_places, with_insistent
from precise_rag.structure import formats
from precise_rag.types import INSISTENT, Candidate
from support.documents import read_cases

QUERY = "When was the old harbour lamp first lit?"
WORDS = ("amber", "birch", "copper", "dune", "ember", "fjord", "grove", "heron")


def found(text: str, doc_id: str = "a", place: int = 0, **fields: object) -> Candidate:
    start = 1000 * place
    return Candidate(doc_id, start, start + len(text), text, 1.0, "rank", **fields)  # type: ignore[arg-type]


def own_text(number: int) -> str:
    """A text that shares hardly a word with others."""
    return " ".join(f"{word}{number}" for word in WORDS)


def several(doc_id: str, n: int, first: int = 0) -> list[Candidate]:
    return [found(own_text(first + k), doc_id, k) for k in range(n)]


def test_one_document_gets_three_quarters_of_the_places_and_several_leave_some_while_others_wait():
    others = [found(own_text(1000 + n), f"other {n}") for n in range(40)]
    places = share_places(QUERY, [*several("loud", 60), *others], 20)
    kept = [c.doc_id for c in places.selection.kept]
    assert (len(kept), kept.count("loud")) == (20, 15)
    assert places.is_shared
    assert places.full == ("loud",)
    waiting = {d.reason for d in places.selection.decisions if not d.kept and d.candidate.doc_id == "loud"}
    assert "its document, or texts like it, had their share of the 20 places" in waiting
    loud = [c for n in range(5) for c in several(f"loud {n}", 60, 100 * n)]
    among_loud = share_places(QUERY, [*loud, *others], 50).selection.kept
    assert sum(c.doc_id.startswith("other") for c in among_loud) >= 8
    alone = several("a", 60)
    places = share_places(QUERY, alone, 50)
    assert places.selection.kept == tuple(alone[:50])
    assert not places.is_shared
    assert [d.reason for d in places.selection.decisions[50:]] == ["not among the best 50"] * 10


@pytest.mark.parametrize("change", ["", "changed", "4711"])
def test_near_copies_in_many_documents_get_three_quarters_of_the_places(change):
    text = "the old harbour lamp was first lit in the stormy autumn of that year by two brothers"
    copies = [found(f"{text} {change and change + str(n)}", f"copy {n}") for n in range(60)]
    copies = copies if change else [replace(c, text=f"{c.text}{'!' * n}") for n, c in enumerate(copies)]
    others = [found(own_text(n), f"other {n}") for n in range(60)]
    kept = share_places(QUERY, [*copies, *others], 50).selection.kept
    assert sum(c.doc_id.startswith("copy") for c in kept) <= 40


def test_what_is_said_again_and_again_gets_a_quarter_of_the_places():
    frames = ["Ask {}", "Of {} we speak", "On {} again", "Nobody knows {}", "They wonder {} daily"]
    loud = [found(frames[n % 5].format(QUERY) + own_text(n), f"loud {n}") for n in range(60)]
    others = [found(own_text(100 + n), f"other {n}") for n in range(60)]
    marked = with_insistent(QUERY, [*loud, *others])
    assert [INSISTENT in c.scores for c in marked] == [True] * 60 + [False] * 60
    kept = share_places(QUERY, marked, 40).selection.kept
    assert sum(c.doc_id.startswith("loud") for c in kept) <= 10


def test_repeats_take_no_place_and_are_named_but_for_those_under_other_words_of_the_question():
    texts = read_cases("filters.json", "the lamp in other letters")
    places = share_places(QUERY, [found(text, f"d{n}") for n, text in enumerate(texts)], 50)
    reasons = ["candidate", "repeats d0:0-17", "repeats d0:0-17", "candidate"]
    assert [(d.kept, d.reason) for d in places.selection.decisions] == [
        (r == "candidate", r) for r in reasons
    ]
    assert places.repeats == {
        c.id: "d0:0-17" for c in (places.selection.decisions[n].candidate for n in (1, 2))
    }
    text = "Change the oil every month."
    pumps = [found(text, name, above=(f"Pump {name}",)) for name in ("M-8", "M-7", "M-9")]
    places = share_places("How often is the oil of pump M-7 changed?", pumps, 50)
    assert [d.kept for d in places.selection.decisions] == [True, True, False]


def test_what_is_said_below_other_titles_is_no_repetition_for_the_first_few_times():
    said, text = Said(), "The lift goes to all floors."
    branches = [found(text, f"d{n}", above=(f"Branch {n}",)) for n in range(7)]
    assert [bool(said.before(one)) for one in branches] == [False] * 5 + [True] * 2
    assert said.before(found(text, "x", above=("House", "Branch 3"))) == branches[3].id
    assert said.before(found(text, "y")) == branches[0].id
    assert (said.before(found("Here.", "z", above=("A",))), said.before(found("Here.", "z", 1))) == ("", "")
    assert [bool(said.before(found(word))) for word in ("-V", "-v", "-V")] == [False, False, True]
    long = [found(f"{text} " * 9, f"d{n}", above=(f"Branch {n}",)) for n in range(2)]
    assert [said.before(one) for one in long] == ["", long[0].id]


def test_few_places_and_no_candidates_are_fine():
    assert share_places(QUERY, [], 5).selection.decisions == ()
    assert share_places(QUERY, [found("...", "a"), found("", "b")], 1).selection.kept[0].text == "..."
    assert with_insistent("?", [found("", "a")])[0].scores == {}


@given(owners=st.lists(st.sampled_from("abcdef"), max_size=60), n_places=st.integers(1, 60))
def test_places_are_filled_once_and_no_document_has_more_than_its_share_while_others_wait(owners, n_places):
    candidates = [found(own_text(n), owner, n) for n, owner in enumerate(owners)]
    rows, _ = in_turns(candidates, n_places)
    assert len(rows) == len(set(rows)) == min(n_places, len(owners))
    waiting = {owners[row] for row in range(len(owners)) if row not in rows}
    share = share_of(n_places)
    for owner in set(owners):
        taken = sum(owners[row] == owner for row in rows)
        others = [sum(owners[row] == one for row in rows) for one in waiting - {owner}]
        assert taken <= share or all(n >= share for n in others)


def test_plain_text_keeps_numbers_and_signs():
    assert plain_text("A  b\u200bC") == "a bc"
    assert plain_text("≥ 5 €") != plain_text("≤ 5 €")
    assert plain_text("-5") != plain_text("5")
    assert "warehouse" in plain_text("The ware-\nhouse").split()


def test_all_of_a_document_of_which_half_is_said_again_is_loud_and_evidence_with_all_words_is_not():
    loud = [found(f"{QUERY} So it is, {n}.", "loud", 100 * n) for n in range(60)]
    evidence = found(f"{QUERY} In 1931.", "truth")
    others = [found(own_text(n), "truth", 1000 + 100 * n) for n in range(10)]
    marked = {c.id: INSISTENT in c.scores for c in with_insistent(QUERY, [*loud, evidence, *others])}
    assert not marked[evidence.id]
    assert all(marked[c.id] for c in loud)
    repeated = [found(QUERY, "loud", 2 * n) for n in range(30)]
    between = [found(f"No. {n}.", "loud", 2 * n + 1) for n in range(30)]
    footers = [found("Contact us about it today or tomorrow.", "honest", n) for n in range(8)]
    honest = [found(own_text(n), "honest", 100 + n) for n in range(10)]
    marked = {
        c.id: INSISTENT in c.scores for c in with_insistent(QUERY, [*repeated, *between, *footers, *honest])
    }
    assert all(marked[c.id] for c in (*repeated, *between, *footers))
    assert not any(marked[c.id] for c in honest)


def test_an_honest_document_with_the_words_of_the_question_in_many_sentences_has_its_part_among_the_loud():
    loud = [found(f"{QUERY} It is so, {own_text(n)}", "loud", n) for n in range(60)]
    honest = [found(f"{QUERY} Yes, {own_text(100 + n)}", "truth", n) for n in range(6)]
    others = [found(own_text(200 + n), f"other {n}") for n in range(60)]
    kept = share_places(QUERY, with_insistent(QUERY, [*loud, *honest, *others]), 50).selection.kept
    assert sum(c.doc_id == "truth" for c in kept) >= 3


def test_what_a_long_text_says_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, long = Counter[str](), "The lamp is lit.\n\n" * 12_000
    monkeypatch.setattr(stems, "with_parted_words", lambda text: read.update([text]) or text)
    monkeypatch.setattr(formats, "detect_format", lambda text: read.update([text]) or "text")
    for _ in range(2):
        formats.read_structure(long)
        for number in range(5_000):
            stems.read_words(f"The lamp of house {number}.")
    assert set(read.values()) == {1}
