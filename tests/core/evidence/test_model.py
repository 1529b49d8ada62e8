import numpy as np
import pytest

from precise_rag.checkpoints.saved import save_checkpoint
from precise_rag.errors import ModelError
from precise_rag.evidence import EvidenceModel
from precise_rag.evidence.features import (
    STEP_FEATURES,
    TEXT_FEATURES,
    question_features,
    stretch_features,
)
from precise_rag.evidence.leaning import language_of, leans
from precise_rag.evidence.model import REACH
from precise_rag.evidence.needs import needs
from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.types import Candidate, Stretch


def stretch(n: int) -> Stretch:
    text = " ".join(f"Sentence number {i} is about boats." for i in range(n))
    return split_into_sentences(Candidate("d", 0, len(text), text, 0.0, "rank"))


def found(n: int, **probabilities: float) -> np.ndarray:
    p = np.full(n, np.nan, dtype=np.float32)
    for row, value in probabilities.items():
        p[int(row[1:])] = value
    return p


def test_a_neighbour_within_reach_has_the_product_of_the_steps_and_a_found_one_gains_by_it(half_model):
    growth = half_model.grow("What boats?", stretch(5), found(5, r2=0.8))
    assert growth.probability == pytest.approx([0.2, 0.4, 0.8, 0.4, 0.2], abs=1e-5)
    assert growth.alone == pytest.approx([0, 0, 0.8, 0, 0], abs=1e-5)
    assert growth.source.tolist() == [2, 2, -1, 2, 2]
    alone = half_model.grow("What boats?", stretch(1), found(1, r0=0.3))
    assert alone.probability == pytest.approx([0.3], abs=1e-5)
    beside = half_model.grow("What boats?", stretch(2), found(2, r0=0.5, r1=0.8))
    assert beside.probability == pytest.approx([1 - 0.5 * (1 - 0.4), 1 - 0.2 * (1 - 0.25)], abs=1e-5)
    n = 2 * REACH + 5
    growth = half_model.grow("What boats?", stretch(n), found(n, r0=0.9))
    assert growth.probability[REACH] > 0
    assert not growth.probability[REACH + 1 :].any()
    assert growth.source[REACH + 1] == -1


def test_text_around_a_step_and_none_beyond_is_read():
    texts = ["He saw us, and we saw him."] * 20 + ["In 1990 it had 20 rooms and 3 doors."] * 20
    text = " ".join(texts)
    around = split_into_sentences(Candidate("d", 0, len(text), text, 0.0, "rank"))
    n = len(around.sentences)
    read = stretch_features(
        question_features("How many?"), around, np.full(n, np.nan), np.full(n - 1, 0.5, dtype=np.float32)
    )
    columns = {name: read.forward[:, STEP_FEATURES.index(name)] for name in TEXT_FEATURES}
    assert not columns["digits"][:12].any()
    assert (np.diff(columns["digits"][11:28]) >= 0).all()
    assert np.ptp(columns["digits"][28:]) == 0
    assert columns["first_person"][0] > 0 == columns["first_person"][-1]


def test_the_packaged_model_grows_with_what_was_found_and_lifts_no_neighbour_above_it():
    n, model, former = 12, EvidenceModel(), np.zeros(12, dtype=np.float32)
    for p in (0.01, 0.3, 0.97):
        growth = model.grow("Why do boats float?", stretch(n), found(n, r4=p, r7=p / 2))
        beside = np.delete(np.arange(n), [4, 7])
        assert (growth.probability[beside] < growth.alone.max()).all()
        assert (growth.probability > former).all()
        former = growth.probability


def test_a_model_for_other_features_is_refused(tmp_path):
    config = {"found_features": ["other"], "step_features": []}
    save_checkpoint(tmp_path, config, {"found": np.zeros(1), "step": np.zeros(0)})
    with pytest.raises(ModelError, match="train it again"):
        EvidenceModel(tmp_path)


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
            "The sizes are in this table.\n\n| a |\n|---|\n\nUse what follows.\n\n- oil\n",
            {
                ("| a | |---|", "The sizes are in this table."),
                ("The sizes are in this table.", "| a | |---|"),
                ("- oil", "Use what follows."),
                ("Use what follows.", "- oil"),
            },
        ),
        (
            "Two parts wear:\n\n- The old wheel turns. Oil is there.\n- the seal\n\nAda left.\n\n- a shed\n",
            {
                ("Two parts wear:", "- The old wheel turns. Oil is there."),
                ("Two parts wear:", "- the seal"),
                ("- The old wheel turns. Oil is there.", "Two parts wear:"),
                ("- the seal", "Two parts wear:"),
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
