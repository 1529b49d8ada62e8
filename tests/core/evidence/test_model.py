"""The growth model and the grower, and what sentences lean on."""

import re
from dataclasses import replace
from itertools import permutations
from unittest.mock import Mock

import numpy as np
import pytest

from precise_rag import Document, HybridIndex
from precise_rag.checkpoints import save_checkpoint
from precise_rag.errors import ModelError
from precise_rag.evidence import EvidenceGrower, EvidenceModel
from precise_rag.evidence.features import (
    FOUND_FEATURES,
    STEP_FEATURES,
    TEXT_FEATURES,
    question_features,
    stretch_features,
)
from precise_rag.evidence.model import REACH
from precise_rag.evidence.needs import language_of, leans, needs, of_entry, of_section
from precise_rag.evidence.records import records
from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.evidence.texts import FoundTexts
from precise_rag.structure import read_structure
from precise_rag.testing import HashEncoder
from precise_rag.types import UNSCORED, Candidate, Span, Stretch
from support.documents import read_cases


@pytest.fixture
def half_model(tmp_path):
    """A found sentence keeps its probability; each step has the probability one half."""
    found = np.array([float(name == "probability") for name in FOUND_FEATURES], dtype=np.float32)
    config = {"found_features": list(FOUND_FEATURES), "step_features": list(STEP_FEATURES)}
    tensors = {"found": found, "step": np.zeros(len(STEP_FEATURES), dtype=np.float32)}
    save_checkpoint(tmp_path / "evidence", config, tensors)
    return EvidenceModel(tmp_path / "evidence")


def stretch(n: int) -> Stretch:
    text = " ".join(f"Sentence number {i} is about boats." for i in range(n))
    return split_into_sentences(Candidate("d", 0, len(text), text, 0.0, "rank"))


def scored(n: int, **probabilities: float) -> np.ndarray:
    p = np.full(n, np.nan, dtype=np.float32)
    for row, value in probabilities.items():
        p[int(row[1:])] = value
    return p


def test_a_neighbour_within_reach_has_the_product_of_the_steps_and_a_found_one_gains_by_it(half_model):
    growth = half_model.grow("What boats?", stretch(5), scored(5, r2=0.8))
    assert growth.probability == pytest.approx([0.2, 0.4, 0.8, 0.4, 0.2], abs=1e-5)
    assert growth.alone == pytest.approx([0, 0, 0.8, 0, 0], abs=1e-5)
    assert growth.source.tolist() == [2, 2, -1, 2, 2]
    alone = half_model.grow("What boats?", stretch(1), scored(1, r0=0.3))
    assert alone.probability == pytest.approx([0.3], abs=1e-5)
    beside = half_model.grow("What boats?", stretch(2), scored(2, r0=0.5, r1=0.8))
    assert beside.probability == pytest.approx([1 - 0.5 * (1 - 0.4), 1 - 0.2 * (1 - 0.25)], abs=1e-5)
    n = 2 * REACH + 5
    growth = half_model.grow("What boats?", stretch(n), scored(n, r0=0.9))
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
        growth = model.grow("Why do boats float?", stretch(n), scored(n, r4=p, r7=p / 2))
        beside = np.delete(np.arange(n), [4, 7])
        assert (growth.probability[beside] < growth.alone.max()).all()
        assert (growth.probability > former).all()
        former = growth.probability


def test_a_model_for_other_features_is_refused(tmp_path):
    config = {"found_features": ["other"], "step_features": []}
    save_checkpoint(tmp_path, config, {"found": np.zeros(1), "step": np.zeros(0)})
    with pytest.raises(ModelError, match="train it again"):
        EvidenceModel(tmp_path)


def pairs(text: str, share: float = 1) -> set[tuple[str, str]]:
    stretch = split_into_sentences(Candidate("d", 7, 7 + len(text), text, 0.5, "probability"))
    texts = [" ".join(sentence.text.split()) for sentence in stretch.sentences]
    return {(texts[row], texts[needed]) for row, needed, part in needs(stretch) if part == share}


def both_ways(*needed: tuple[str, str]) -> set[tuple[str, str]]:
    return {*needed, *((other, one) for one, other in needed)}


def test_sentences_lean_that_begin_with_a_word_for_what_was_said_in_english_by_default() -> None:
    assert all(map(leans, ("It froze.", "However, he came.", "(This is old.)", "In that case stop.")))
    assert all(map(leans, ("With these\n  modes it spins.", "As a\nresult, it froze.")))
    assert not any(map(leans, ("Italy froze.", "The pump stood.", "Thisbe came.", "They: we did.", "At 9.")))
    assert language_of("") == language_of("Qua 7 xyz") == "en"
    assert leans("Die Pumpe friert.", "de") is False
    assert leans("Son of a miller, Ada left.", language_of("Son of the miller, and of the maid.")) is False


@pytest.mark.parametrize(
    ("language", "first", "leaning", "other"), read_cases("needs.json", "words of languages")
)
def test_words_for_what_was_said_are_known_in_other_languages(
    language: str, first: str, leaning: str, other: str
) -> None:
    assert language_of(f"{first} {leaning} {other}") == language
    assert pairs(f"{first} {leaning} {other}") == {(leaning, first)}


@pytest.mark.parametrize(
    ("text", "needed", "both"),
    [
        *read_cases("needs.json", "needs"),
        ("The pump " + "and the pump " * 60 + "stood. It froze.", [], []),
        (
            "09:10\tann\tHello to all of you in the hall.\n" * 20 + "09:12\tann\tWhich?\n09:13\tben\tBlue.\n",
            [("09:12 ann Which?", "09:13 ben Blue.")],
            [],
        ),
        (
            '[{"by": "Ann", "text": "Which?"},\n'
            f'{{"by": "Bob", "text": "{"Old " * 40}"}},\n{{"by": "{"Eve " * 30}"}}]',
            [('[{"by": "Ann", "text": "Which?"},', f'{{"by": "Bob", "text": "{"Old " * 40}"}},')],
            [],
        ),
    ],
)
def test_a_sentence_needs_what_it_leans_on_its_lead_in_and_what_it_announces(text, needed, both) -> None:
    assert pairs(text) == set(map(tuple, needed)) | both_ways(*map(tuple, both))


def test_the_beginning_of_an_entry_needs_what_is_below_it() -> None:
    text = "Options\n\n" + "".join(
        f"  -{sign}\n      Waits long.\n" + "      It leaves.\n" * 90 for sign in "abc"
    )
    stretch = split_into_sentences(Candidate("d", 0, len(text), text, 0.0, "rank"))
    (row,) = (row for row, one in enumerate(stretch.sentences) if "-b" in one.text)
    needed = [need.needed for need in of_entry(stretch, row)]
    n_tokens = sum(stretch.sentences[after].n_tokens or 0 for after in needed)
    assert (needed[0], n_tokens <= 240 < n_tokens + 8) == (row + 1, True)
    assert not [*of_entry(stretch, needed[0])]
    call = "  lock_of (boat)->left = key_of (side);\n" * 7
    function = (
        "/* Leave with boat {0}.  */\nint leave_{0}(int side) {{\n  int left = 0;\n\n"
        + call
        + "  return left;\n}}\n\n"
    )
    text = "".join(map(function.format, "abc"))
    stretch = split_into_sentences(Candidate("d", 0, len(text), text, 0.0, "rank"))
    (row,) = (row for row, one in enumerate(stretch.sentences) if "boat b" in one.text)
    brought = [stretch.sentences[need.needed].text for need in of_entry(stretch, row)]
    assert ("leave_b" in brought[0], "key_of" in brought[-1]) == (True, True)


def test_the_likeliest_sentence_of_a_short_section_needs_all_of_it_if_it_is_named_or_likely() -> None:
    steps = "Shut the valve.\n\nOpen the lid.\n\nLet it run dry.\n\n"
    text = f"# Pump\n\n## Flushing\n\n{steps}## Storage\n\n{'Keep it dry and warm. ' * 60}"
    stretch = split_into_sentences(Candidate("d", 0, len(text), text, 0.0, "rank"))
    worth = np.array([float("lid" in one.text) for one in stretch.sentences], dtype=np.float32)
    needed = of_section("How is the flushing done?", stretch, worth)
    named = {stretch.sentences[need.needed].text for need in needed}
    assert named == {"Shut the valve.", "Open the lid.", "Let it run dry."}
    unnamed = "How is the storage of the pump done?"
    assert {need.needed for need in of_section(unnamed, stretch, worth)} >= {*np.flatnonzero(worth)}
    worth[-1] = 3.0
    assert not [*of_section(unnamed, stretch, worth)]


@pytest.mark.parametrize(("text", "first", "second", "expected"), read_cases("titles.json", "of two texts"))
def test_the_headings_in_a_text_are_above_the_text_behind_it(monkeypatch, text, first, second, expected):
    read = Mock(wraps=read_structure)
    monkeypatch.setattr("precise_rag.evidence.texts.read_structure", read)
    cuts = (0, text.index(first)), (text.index(second), len(text))
    parts = [Candidate("d", a, b, text[a:b].rstrip(), 0.0, "rank") for a, b in cuts]
    found = FoundTexts("When does the gate open?", [*parts, replace(parts[1], doc_id="other")])
    above = {one.text: [*one.above] for one in found.sentences.kept if one.doc_id == "d"}
    assert above == above | expected
    assert found.stretches[2].sentences[0].above == ()
    assert read.call_count == 2  # one of them is of two texts that meet


def test_a_nested_list_has_a_lead_in_of_its_own_and_long_ones_are_announced_in_part() -> None:
    found = pairs("Fields:\n\n- a: these kinds:\n  - one\n  - two\n- b\n")
    assert {("- one", "- a: these kinds:"), ("- two", "- a: these kinds:"), ("- b", "Fields:")} <= found
    assert ("- b", "- a: these kinds:") not in found
    items = "".join(f"- the part number {number} of the old blue pump in the shed\n" for number in range(40))
    announced = [pair for pair in pairs(f"These wear:\n\n{items}") if pair[0] == "These wear:"]
    assert 2 < len(announced) < 20
    assert not pairs(f"These wear:\n\n{items}", 0.75)


@pytest.mark.parametrize("above", ["These wear:", "# Parts", "Ask for:\n\n- food\n- parts:"])
def test_an_item_of_a_short_list_needs_the_others_if_it_is_announced_or_below_a_heading(above: str) -> None:
    others = {("- oil", "- belts"), ("- belts", "- oil")}
    indented = "  " * (above[-2:] == "s:")
    text = f"{above}\n\n{indented}- oil\n{indented}- belts\n\nInk lasts.\n\n- ink\n- pens\n"
    assert {pair for pair in pairs(text, 0.75) if pair[0] != pair[1] and pair[0] in dict(others)} >= others
    assert not {one for pair in pairs(text, 0.75) for one in pair} & {"- ink", "- pens", "Ink lasts."}


TEXT = "The pump is blue. It needs oil.\n\nService it every year. Ask Ada first. The shed is far away."


@pytest.fixture(scope="module")
def index():
    documents = [Document("pump", TEXT, {"page": 3}), Document("sea", "Fish swim. Boats float. Birds fly.")]
    return HybridIndex.build(documents, HashEncoder())


def find(index, text: str, score: float = 0.8, scale="probability"):
    all_found = index.search("pump", 20, returns="sentence")
    return replace(next(c for c in all_found if c.text == text), score=score, score_scale=scale)


def grow(index, half_model, *candidates, min_score=0.02):
    return EvidenceGrower(index, min_score=min_score, model=half_model).grow(
        "When to service the pump?", candidates
    )


def test_neighbours_come_along_exact_with_their_reasons_and_what_the_index_knows(index, half_model):
    grown = grow(index, half_model, find(index, "Service it every year."), min_score=0.3)
    texts = ["Service it every year.", "It needs oil.", "Ask Ada first.", "The pump is blue."]
    assert [c.text for c in grown.kept] == texts
    assert [round(c.score, 2) for c in grown.kept] == [0.8, 0.4, 0.4, 0.4]
    assert grown.reasons == (
        "found, 0.80",
        "came along with the next sentence, which was found, 0.80",
        "came along with the previous sentence, which was found, 0.80",
        "needed by the next sentence, 0.40",
    )
    for candidate in grown.kept:
        assert candidate.text == TEXT[candidate.start : candidate.end]
        assert (candidate.metadata, candidate.score_scale) == ({"page": 3}, "probability")
        assert candidate.n_tokens == HashEncoder().count_tokens([candidate.text])[0]
    assert grown.kept[0].scores["found"] == 0.8
    beside = grow(index, half_model, find(index, "Service it every year."), find(index, "Boats float.", 0.99))
    pump = {c.id: c.score for c in beside.kept if c.doc_id == "pump"}
    assert {c.id: c.score for c in grown.kept}.items() <= pump.items(), "another document changes nothing"
    apart = HybridIndex.build([Document("d", "The pump is blue.\n\n# Sea\n\nFish swim.")], HashEncoder())
    assert len(grow(apart, half_model, find(apart, "The pump is blue."), min_score=0).kept) == 1
    grown = grow(index, half_model, find(index, "It needs oil."), find(index, "The pump is blue.", 0.2))
    reasons = {c.text: reason for c, reason in zip(grown.kept, grown.reasons, strict=True)}
    assert reasons["The pump is blue."] == "found, 0.20; needed by the next sentence, 0.82"


def test_logits_become_probabilities_and_what_has_none_or_is_not_known_does_not_grow(index, half_model):
    grown = grow(index, half_model, find(index, "Service it every year.", 0.0, "logit"))
    assert grown.kept[0].score == pytest.approx(0.5, abs=1e-5)
    candidate = find(index, "Service it every year.", 0.8, "rank")
    grown = grow(index, half_model, candidate)
    assert grown.kept == (candidate,)
    assert "not a probability" in grown.reasons[0]
    stranger = replace(find(index, "Service it every year."), doc_id="elsewhere")
    part = replace(find(index, "Ask Ada first.", 0.5), end=40)
    grown = grow(index, half_model, stranger, part)
    assert {c.id for c in grown.kept} == {stranger.id, part.id}
    assert set(grown.reasons) == {"not grown: its neighbours are not known"}
    assert grow(index, half_model).decisions == ()
    unscored = replace(find(index, "Boats float.", 0.0), scores={UNSCORED: 1.0})
    grown = grow(index, half_model, unscored, find(index, "Service it every year."))
    assert grown.kept[-1].id == unscored.id


def test_lines_without_a_time_belong_to_the_line_of_a_log_above_them_which_needs_the_errors_of_it():
    starts = [f"2024-05-02 03:1{number}:09 job {number} failed" for number in range(9)]
    trace = ["Traceback:", '  File "a.py", line 8', "    result = handler(job)", "OSError: no space left"]
    text = "\n".join([*starts[:2], *trace, starts[2], "It waits for the pump", *starts[3:]])
    belongs = {(line.strip(), starts[1]) for line in trace}
    beside = set(permutations((starts[2], "It waits for the pump"), 2))
    assert pairs(text) == {*belongs, (starts[1], trace[-1]), *beside}


@pytest.mark.parametrize(
    "foot", ["\n\n\n\nAda Brandt   Draft   [Page {}]\n\f\n", "\n\n\f", "\n\n      {}\n\f"]
)
def test_running_lines_are_no_sentences_and_the_halves_of_a_sentence_on_two_pages_need_each_other(foot):
    page = "Pump {2} holds at most {0}{1}Draft on pumps   June\n\n\nlitres of oil. It is red.\n"
    document = Document("draft", "".join(page.format(340 + n, foot.format(n), "ABCD"[n]) for n in range(4)))
    found = HybridIndex.build([document], HashEncoder()).search("pump", 30, returns="sentence")
    assert not [one for one in found if "Brandt" in one.text or "Draft" in one.text]
    assert ("litres of oil.", "Pump B holds at most 341") in pairs(document.text)


@pytest.mark.parametrize(("start", "text", "record"), read_cases("needs.json", "records"))
def test_lines_that_begin_alike_again_and_again_are_records(start: int, text: str, record: list[str]) -> None:
    lines = re.compile(r".*\n(?:\W+\n)?")
    whole = split_into_sentences(
        Candidate("d", start, start + len(text), text, 0.0, "rank"),
        lambda text: [Span(*one.span()) for one in lines.finditer(text)],
    )
    found = [[one.text.strip() for one in whole.sentences[one.start : one.stop]] for one in records(whole)]
    assert (record in found) if record else not found


def test_a_record_grows_to_its_own_fields(half_model):
    fields = "Name: {0}\nRoom: {1}\nPhone: 3{1}\nDesk: {1}\n\n"
    records = "".join(fields.format(name, room) for name, room in (("A", 12), ("B", 14), ("C", 12)))
    index = HybridIndex.build([Document("staff", records)], HashEncoder())
    grown = grow(index, half_model, find(index, "Name: B"))
    assert {c.text for c in grown.kept if c.score > 0.7} == {"Name: B", "Room: 14", "Phone: 314", "Desk: 14"}
    grown = grow(index, half_model, find(index, "Phone: 314"))
    assert {c.text for c in grown.kept[:4]} == {"Name: B", "Room: 14", "Phone: 314", "Desk: 14"}
    wide = "".join(f"Measured value {n}: {n + 100}\n" for n in range(30)) + "Make: Legend\n\nIt is a car."
    assert ("Measured value 7: 107", "Make: Legend") in pairs(wide)


def test_a_heading_grows_to_what_it_stands_above_and_no_sentence_comes_along_over_it(half_model):
    text = "# Pump\n\nIt needs oil.\n\n## Service\n\nDo it every year. Ask Ada.\n\n## Storage\n\nKeep it dry."
    index = HybridIndex.build([Document("pump", text)], HashEncoder())
    grown = grow(index, half_model, find(index, "Do it every year."))
    assert [c.text for c in grown.kept] == ["Do it every year.", "Ask Ada.", "## Service"]
    flat = HybridIndex.build([Document("pump", text)], HashEncoder(), headings=False)
    grown = grow(flat, half_model, find(flat, "Do it every year."))
    assert "It needs oil." in [c.text for c in grown.kept]
    grown = grow(index, half_model, find(index, "## Service"))
    scores = {"## Service": 0.8, "Do it every year.": 0.8, "Ask Ada.": 0.8}
    assert {c.text: round(c.score, 2) for c in grown.kept} == scores
    reasons = dict(zip((c.text for c in grown.kept), grown.reasons, strict=True))
    assert reasons["## Service"] == "found, 0.80"
    title = find(index, "## Storage", 0.005)
    assert [
        c.score for c in grow(index, half_model, find(index, "Ask Ada."), title).kept if c.id == title.id
    ] == [0.0]
