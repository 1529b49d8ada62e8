import json
import math
from threading import Lock
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest

from precise_rag.facts import (
    FACTS_KEY,
    candidate_facts,
    is_same,
    noted_fields,
    noted_place,
    noted_scale,
    piece_id,
    place_at,
    place_facts,
    read_facts,
    scores_on_a_scale,
    write_facts,
)
from precise_rag.types import Candidate, Span
from support.documents import read_cases

LOCK = Lock()
SCORES: dict = {"dense": np.float32(0.5)}
FOUND = Candidate(
    "d", 3, 9, "a fact", 0.25, "probability", n_tokens=2, passage=Span(0, 40), scores=SCORES, above=("Guide",)
)


def test_facts_are_one_text_and_come_back():
    facts = candidate_facts(FOUND, "among the first 1 (min_k)")
    scored = {"score": 0.25, "score_scale": "probability", "scores": {"dense": 0.5}, "n_tokens": 2}
    around = {"passage": [0, 40], "above": ["Guide"], "reason": "among the first 1 (min_k)"}
    assert facts == {"doc_id": "d", "start": 3, "end": 9} | scored | around
    metadata = json.loads(json.dumps({FACTS_KEY: write_facts(facts)}))
    assert isinstance(metadata[FACTS_KEY], str)
    assert read_facts(metadata) == read_facts(SimpleNamespace(metadata=metadata)) == facts
    fields = {"n_tokens": 2, "passage": Span(0, 40), "scores": {"dense": 0.5}, "above": ("Guide",)}
    assert noted_fields(facts) == fields
    assert noted_place(facts, 6) == ("d", Span(3, 9))
    assert noted_place(facts, 5) is None, "of another text"
    least = {"doc_id": "d", "start": 0, "end": 1, "score": 1.0, "score_scale": "rank"}
    assert candidate_facts(Candidate("d", 0, 1, "a", 1.0, "rank")) == least
    assert write_facts(place_facts("d", Span(3, 9))) == '{"doc_id":"d","start":3,"end":9}'


@pytest.mark.parametrize(
    "noted",
    [
        *(None, 7, {}, *({FACTS_KEY: one} for one in (None, {"score": 1.0}, "[" * 100_000))),
        *({FACTS_KEY: text} for text in read_cases("documents.json", "no facts")),
    ],
)
def test_what_is_no_fact_is_ignored(noted):
    facts = read_facts(noted)
    assert noted_place(facts, 3) is None
    assert noted_fields(facts) == {"n_tokens": None, "passage": None, "scores": {}, "above": ()}


@pytest.mark.parametrize(("pages", "found"), read_cases("documents.json", "pages of a document"))
def test_pages_are_counted_from_one_and_metadata_of_this_name_from_elsewhere_are_none(pages, found):
    assert place_at({"pages": [0, 20]}, 20) == {}
    assert [place_at({"precise_pages": pages}, offset).get("page") for offset in (0, 19, 20)] == found


def test_metadata_that_cannot_be_compared_or_pickled_are_not_the_same():
    assert not is_same([np.arange(2), LOCK], [np.arange(2), LOCK])


def test_the_scale_is_that_of_the_noted_scores_only_and_without_one_they_repeat_the_order() -> None:
    facts = candidate_facts(FOUND)
    assert noted_scale(facts, 0.25) == "probability"
    assert noted_scale(facts, 0.5) is None
    assert noted_scale({}, 0.25) is None
    noted = {"score": 0.25, "score_scale": "probability"}
    assert scores_on_a_scale([(0.25, noted)], None) == ([0.25], "probability")
    assert scores_on_a_scale([(0.25, noted), (3.0, {})], None) == ([0.0, -1.0], "rank")
    assert scores_on_a_scale([(2.0, {}), (1.0, {})], "logit") == ([2.0, 1.0], "logit")
    assert scores_on_a_scale([(None, {}), (1.0, {})], None) == ([0.0, -1.0], "rank")
    scores, scale = scores_on_a_scale([(None, {}), (1.0, {})], "logit")
    assert (str(scores), scale) == ("[nan, 1.0]", "logit")
    assert scores_on_a_scale([(None, {}), (math.inf, {})], "logit") == ([0.0, -1.0], "rank")


def test_ids_of_pieces_are_uuids_that_stay_the_same():
    assert piece_id("d", 3, 9) == piece_id("d", 3, 9) == str(UUID(piece_id("d", 3, 9)))
    places = (("d", 3, 9), ("d", 3, 10), ("e", 3, 9), ("\ud800", 3, 9))
    assert len({piece_id(*place) for place in places}) == 4


def test_a_score_that_nobody_can_know_stays_unknown() -> None:
    candidate = Candidate(
        "a", 0, 3, "May", 0.5, "probability", scores={"dense": 0.75, "dense_level": math.nan}
    )
    text = write_facts(candidate_facts(candidate))
    assert "NaN" not in text
    scores = noted_fields(json.loads(text))["scores"]
    assert scores["dense"] == 0.75
    assert math.isnan(scores["dense_level"])
