import json
import math
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest

from precise_rag.facts import (
    FACTS_KEY,
    candidate_facts,
    noted_fields,
    noted_place,
    noted_scale,
    page_at,
    piece_id,
    place_facts,
    read_facts,
    scores_on_a_scale,
    write_facts,
)
from precise_rag.types import Candidate, Span

SCORES: dict = {"dense": np.float32(0.5)}
FOUND = Candidate(
    "d", 3, 9, "a fact", 0.25, "probability", n_tokens=2, passage=Span(0, 40), scores=SCORES, above=("Guide",)
)

NOTHING = {"n_tokens": None, "passage": None, "scores": {}, "above": ()}


def test_facts_are_one_text_and_come_back():
    facts = candidate_facts(FOUND, "among the first 1 (min_k)")
    assert facts == {
        "doc_id": "d",
        "start": 3,
        "end": 9,
        "score": 0.25,
        "score_scale": "probability",
        "scores": {"dense": 0.5},
        "n_tokens": 2,
        "passage": [0, 40],
        "above": ["Guide"],
        "reason": "among the first 1 (min_k)",
    }
    metadata = json.loads(json.dumps({FACTS_KEY: write_facts(facts)}))
    assert isinstance(metadata[FACTS_KEY], str)
    assert read_facts(metadata) == read_facts(SimpleNamespace(metadata=metadata)) == facts
    fields = {"n_tokens": 2, "passage": Span(0, 40), "scores": {"dense": 0.5}, "above": ("Guide",)}
    assert noted_fields(facts) == fields
    assert noted_place(facts, 6) == ("d", Span(3, 9))


def test_entries_without_a_value_are_left_out():
    facts = candidate_facts(Candidate("d", 0, 1, "a", 1.0, "rank"))
    assert facts == {"doc_id": "d", "start": 0, "end": 1, "score": 1.0, "score_scale": "rank"}
    assert noted_fields(facts) == NOTHING


def test_a_place_is_small():
    assert write_facts(place_facts("d", Span(3, 9))) == '{"doc_id":"d","start":3,"end":9}'


@pytest.mark.parametrize(
    "metadata",
    [{}, {FACTS_KEY: "a note"}, {FACTS_KEY: None}, {FACTS_KEY: {"score": 1.0}}, {FACTS_KEY: "[1]"}, None, 7],
)
def test_metadata_without_facts_give_none(metadata):
    assert read_facts(metadata) == {}


def test_pages_are_counted_from_one():
    assert [page_at({"pages": [0, 20]}, offset) for offset in (0, 19, 20)] == [1, 1, 2]


@pytest.mark.parametrize("pages", [None, 12, "3-4", ["a"], {}])
def test_metadata_of_this_name_from_elsewhere_are_no_pages(pages):
    assert page_at({"pages": pages}, 5) is None


@pytest.mark.parametrize(
    "facts", [{}, {"doc_id": 1, "start": 0, "end": 6}, {"doc_id": "d", "start": 0, "end": 5}]
)
def test_a_place_of_another_text_is_none(facts):
    assert noted_place(facts, 6) is None


def test_the_scale_is_that_of_the_noted_score_only():
    facts = candidate_facts(FOUND)
    assert noted_scale(facts, 0.25) == "probability"
    assert noted_scale(facts, 0.5) is None
    assert noted_scale({}, 0.25) is None


def test_ids_of_pieces_are_uuids_that_stay_the_same():
    assert piece_id("d", 3, 9) == piece_id("d", 3, 9) == str(UUID(piece_id("d", 3, 9)))
    assert (
        len({piece_id("d", 3, 9), piece_id("d", 3, 10), piece_id("e", 3, 9), piece_id("\ud800", 3, 9)}) == 4
    )


@pytest.mark.parametrize(
    "damaged",
    [
        "[" * 100_000,
        '{"scores": {"a": 1' + "0" * 400 + "}}",
        '{"scores": {"a": NaN, "b": 1e999}, "n_tokens": true}',
        '{"doc_id": "a", "start": -5, "end": -2, "n_tokens": -3, "passage": [9, 1]}',
        '{"above": "Guide"}',
        '{"doc_id": "a", "start": false, "end": 3}',
    ],
)
def test_damaged_facts_are_ignored(damaged):
    facts = read_facts({FACTS_KEY: damaged})

    assert noted_place(facts, 3) is None
    assert noted_fields(facts) == NOTHING


def test_a_score_that_nobody_can_know_stays_unknown() -> None:
    candidate = Candidate(
        "a", 0, 3, "May", 0.5, "probability", scores={"dense": 0.75, "dense_level": math.nan}
    )
    text = write_facts(candidate_facts(candidate))
    assert "NaN" not in text
    scores = noted_fields(json.loads(text))["scores"]
    assert scores["dense"] == 0.75
    assert math.isnan(scores["dense_level"])


def test_scores_are_on_one_scale_or_repeat_the_order() -> None:
    noted = {"score": 0.25, "score_scale": "probability"}
    assert scores_on_a_scale([(0.25, noted)], None) == ([0.25], "probability")
    assert scores_on_a_scale([(0.25, noted), (3.0, {})], None) == ([0.0, -1.0], "rank")
    assert scores_on_a_scale([(2.0, {}), (1.0, {})], "logit") == ([2.0, 1.0], "logit")
    assert scores_on_a_scale([(None, {}), (1.0, {})], None) == ([0.0, -1.0], "rank")
    scores, scale = scores_on_a_scale([(None, {}), (1.0, {})], "logit")
    assert (str(scores), scale) == ("[nan, 1.0]", "logit")
    assert scores_on_a_scale([(None, {}), (math.inf, {})], "logit") == ([0.0, -1.0], "rank")
