import json

import numpy as np
import pytest

from precise_rag.facts import FACTS_KEY, noted_fields, noted_scale, read_facts, write_facts
from precise_rag.types import Candidate, Span

SCORES: dict = {"dense": np.float32(0.5)}
FOUND = Candidate("d", 3, 9, "a fact", 0.25, "probability", n_tokens=2, passage=Span(0, 40), scores=SCORES)


def test_facts_are_json_values_and_come_back():
    facts = write_facts(FOUND, "among the first 1 (min_k)")
    assert facts == {
        "score": 0.25,
        "score_scale": "probability",
        "scores": {"dense": 0.5},
        "n_tokens": 2,
        "passage": [0, 40],
        "reason": "among the first 1 (min_k)",
    }
    again = read_facts(json.loads(json.dumps({FACTS_KEY: facts})))
    assert again == facts
    assert noted_fields(again) == {"n_tokens": 2, "passage": Span(0, 40), "scores": {"dense": 0.5}}


def test_entries_without_a_value_are_left_out():
    facts = write_facts(Candidate("d", 0, 1, "a", 1.0, "rank"))
    assert facts == {"score": 1.0, "score_scale": "rank"}
    assert noted_fields(facts) == {"n_tokens": None, "passage": None, "scores": {}}


@pytest.mark.parametrize("metadata", [{}, {FACTS_KEY: "a note"}, {FACTS_KEY: None}])
def test_metadata_without_facts_give_none(metadata):
    assert read_facts(metadata) == {}


def test_the_scale_is_that_of_the_noted_score_only():
    facts = write_facts(FOUND)
    assert noted_scale(facts, 0.25) == "probability"
    assert noted_scale(facts, 0.5) is None
    assert noted_scale({}, 0.25) is None
