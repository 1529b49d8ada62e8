import pytest

from precise_rag.evidence.leaning import language_of, leans
from precise_rag.evidence.needs import needs
from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.types import Candidate


def pairs(text: str) -> set[tuple[str, str]]:
    stretch = split_into_sentences(Candidate("d", 7, 7 + len(text), text, 0.5, "probability"))
    texts = [" ".join(sentence.text.split()) for sentence in stretch.sentences]
    return {(texts[row], texts[needed]) for row, needed in needs(stretch)}


def test_sentences_lean_that_begin_with_a_word_for_what_was_said_in_english_by_default() -> None:
    assert all(map(leans, ("It froze.", "However, he came.", "(This is old.)", "In that case stop.")))
    assert not any(map(leans, ("Italy froze.", "The pump stood.", "Thisbe came.", "They: we did. ")))
    assert language_of("") == language_of("Qua 7 xyz") == "en"
    assert leans("Die Pumpe friert.", "de") is False
    assert leans("Son of a miller, Ada left.", language_of("Son of the miller, and of the maid.")) is False


@pytest.mark.parametrize(
    ("language", "first", "leaning", "other"),
    [
        ("de", "Die Pumpe stand still.", "Sie ist mit dem Eis gefroren.", "Siegen ist nicht der Ort."),
        ("es", "La bomba se paró con el frío.", "Sin embargo, la rueda gira.", "Esteban sale por la puerta."),
        ("fr", "La roue est pour la ferme.", "C’est une roue de bois.", "Cesare est dans la cour."),
        ("ru", "Насос стоит на дворе.", "Он не работает и в мороз.", "Онега не стоит на дворе."),
    ],
)
def test_words_for_what_was_said_are_known_in_other_languages(
    language: str, first: str, leaning: str, other: str
) -> None:
    assert language_of(f"{first} {leaning} {other}") == language
    assert pairs(f"{first} {leaning} {other}") == {(leaning, first)}


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("The pump stood. It froze. It burst. Ada left.", {("It froze.", "The pump stood.")}),
        ("The pump " + "and the pump " * 60 + "stood. It froze.", set()),
        ("# Pumps\n\nIt froze.", set()),
        ("- the wheel\n- It froze.\n\nThis is all.", set()),
        (
            "Ada left.\n\nThe sizes are given here:\n\n| a |\n|---|\n\nShe came back.\n",
            {
                ("| a | |---|", "The sizes are given here:"),
                ("The sizes are given here:", "| a | |---|"),
            },
        ),
        (
            "This is as if\n\n   f(x)\n\nwas written. Call it so:\n\n   g(x)\n\nIt is done.\n\n   h(x)\n",
            {
                ("f(x)", "This is as if"),
                ("This is as if", "f(x)"),
                ("g(x)", "Call it so:"),
                ("Call it so:", "g(x)"),
            },
        ),
        (
            "Two parts wear:\n\n- The old wheel turns. Oil is there.\n- the seal\n\nAda left.\n\n- a shed\n",
            {
                ("Two parts wear:", "- The old wheel turns."),
                ("Two parts wear:", "Oil is there."),
                ("Two parts wear:", "- the seal"),
                ("- The old wheel turns.", "Two parts wear:"),
                ("- the seal", "Two parts wear:"),
                ("Oil is there.", "- The old wheel turns."),
            },
        ),
    ],
)
def test_a_sentence_needs_what_it_leans_on_its_lead_in_and_what_it_announces(
    text: str, needed: set[tuple[str, str]]
) -> None:
    assert pairs(text) == needed


def test_a_nested_list_has_a_lead_in_of_its_own_and_long_ones_are_announced_in_part() -> None:
    found = pairs("Fields:\n\n- a: these kinds:\n  - one\n  - two\n- b\n")
    assert {("- one", "- a: these kinds:"), ("- two", "- a: these kinds:"), ("- b", "Fields:")} <= found
    assert ("- b", "- a: these kinds:") not in found
    items = "".join(f"- the part number {number} of the old blue pump in the shed\n" for number in range(40))
    announced = [pair for pair in pairs(f"These wear:\n\n{items}") if pair[0] == "These wear:"]
    assert 2 < len(announced) < 20
