from dataclasses import replace

import pytest

from precise_rag import Document, HybridIndex
from precise_rag.evidence import EvidenceGrower
from precise_rag.testing import HashEncoder
from precise_rag.types import UNSCORED

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
    assert [(c.text, round(c.score, 2)) for c in grown.kept] == [
        ("Service it every year.", 0.8),
        ("The pump is blue.", 0.4),
        ("It needs oil.", 0.4),
        ("Ask Ada first.", 0.4),
    ]
    assert grown.reasons == (
        "found, 0.80",
        "needed by the next sentence, 0.40",
        "came along with the next sentence, which was found, 0.80",
        "came along with the previous sentence, which was found, 0.80",
    )
    for candidate in grown.kept:
        assert candidate.text == TEXT[candidate.start : candidate.end]
        assert (candidate.metadata, candidate.score_scale) == ({"page": 3}, "probability")
        assert candidate.n_tokens == HashEncoder().count_tokens([candidate.text])[0]
    assert grown.kept[0].scores["found"] == 0.8
    beside = grow(index, half_model, find(index, "Service it every year."), find(index, "Boats float.", 0.99))
    pump = {c.id: c.score for c in beside.kept if c.doc_id == "pump"}
    assert {c.id: c.score for c in grown.kept}.items() <= pump.items(), "another document changes nothing"
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


SECTIONS = "# Pump\n\nIt needs oil.\n\n## Service\n\nDo it every year. Ask Ada.\n\n## Storage\n\nKeep it dry."


def test_a_heading_grows_to_what_it_stands_above_and_no_sentence_comes_along_over_it(half_model):
    index = HybridIndex.build([Document("pump", SECTIONS)], HashEncoder())
    grown = grow(index, half_model, find(index, "Do it every year."))
    assert [c.text for c in grown.kept] == ["Do it every year.", "## Service", "Ask Ada."]
    index = HybridIndex.build([Document("pump", SECTIONS)], HashEncoder(), headings=False)
    grown = grow(index, half_model, find(index, "Do it every year."))
    assert "It needs oil." in [c.text for c in grown.kept]
    index = HybridIndex.build([Document("pump", SECTIONS)], HashEncoder())
    grown = grow(index, half_model, find(index, "## Service"))
    assert {c.text: round(c.score, 2) for c in grown.kept} == {
        "## Service": 0.4,
        "Do it every year.": 0.4,
        "Ask Ada.": 0.2,
    }
    reasons = dict(zip((c.text for c in grown.kept), grown.reasons, strict=True))
    assert reasons["## Service"] == "found, 0.80; a heading is no more probable than the sentence below it"
