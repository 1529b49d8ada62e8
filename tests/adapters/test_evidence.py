"""The evidence parts cut texts to what answers, as the core does, and say where it lies."""

import pytest

from precise_rag import Candidate, EvidenceExtractor, read_facts
from precise_rag.rerank import load_reranker
from support.frameworks import each_framework
from support.velm import CORE, QUESTIONS, TEXTS

TEXT = (
    "The harbour has three piers. Ilse Brandt is the captain of the ferry to Velm. "
    "She has sailed since 1998. "
    "The bakery opens at six. Rye bread is sold on Fridays."
)
FISH = "Herring is cheap in autumn. The market closes at noon."
QUESTION = "Who is the captain of the ferry?"


def cut(framework, **settings):
    part = framework.part("Evidence", reranker="packaged", **{"min_score": 0.3, "min_keep": 1, **settings})
    found = [framework.piece(FISH, "fish", 0.7), framework.piece(TEXT, "town", 0.4, source="town.txt")]
    return framework.cut(part, found, QUESTION)


@each_framework
def test_only_the_evidence_is_returned_and_its_place_is_exact(framework):
    best = next(piece for piece in cut(framework) if "Ilse Brandt" in framework.text(piece))
    facts = read_facts(best)
    assert len(framework.text(best)) < len(TEXT)
    assert TEXT[facts["start"] : facts["end"]] == framework.text(best)
    assert facts["score"] == framework.score(best)
    assert "retrieval" in facts["scores"]
    assert "found" in facts["reason"]
    assert framework.metadata(best)["source"] == "town.txt"


@each_framework
def test_nothing_is_returned_if_nothing_is_relevant_and_that_is_allowed(framework):
    assert cut(framework, min_score=1.0, min_keep=0) == []
    assert cut(framework, min_score=1.0, min_keep=1) != []


@each_framework
async def test_evidence_is_that_of_the_core_also_without_blocking(framework):
    query = QUESTIONS[0]
    whole = [
        Candidate(d.id, 0, len(d.text), d.text, -float(i), "rank", metadata=d.metadata)
        for i, d in enumerate(CORE)
    ]
    excerpts = EvidenceExtractor(load_reranker("packaged")).extract(query, whole).excerpts
    found = [framework.piece(text, name, title=name) for name, text in TEXTS.items()]
    before = [piece.model_dump() for piece in found]
    part = framework.part("Evidence", reranker="packaged")
    assert excerpts
    for kept in (framework.cut(part, found, query), await framework.acut(part, found, query)):
        assert [placed(framework, piece) for piece in kept] == [
            (e.doc_id, e.start, e.end, e.text, pytest.approx(e.score)) for e in excerpts
        ]
    assert [piece.model_dump() for piece in found] == before


def placed(framework, piece):
    facts = read_facts(piece)
    return facts["doc_id"], facts["start"], facts["end"], framework.text(piece), facts["score"]


@each_framework
def test_headings_inside_a_text_stand_above_its_evidence(framework):
    text = (
        "# Yard\n\n## Pump M-7\n\nChange the oil every month. Ask Ada for the key.\n\n"
        "## Saw\n\nSharpen the blade every year. Ask Ben for the file."
    )
    query = "How often is the oil of the pump M-7 changed?"
    part = framework.part("Evidence", reranker="packaged", share_of_best=1.0, min_keep=1)
    kept = framework.cut(part, [framework.piece(text, "yard")], query)
    best = max(kept, key=framework.score)
    assert "oil" in framework.text(best)
    assert read_facts(best)["above"] == ["Yard", "Pump M-7"]
    assert framework.metadata(best)["section"] == "Yard > Pump M-7"


@each_framework
def test_bad_settings_are_refused(framework):
    with pytest.raises(ValueError, match="min_score must be"):
        framework.part("Evidence", reranker="packaged", min_score=3)
