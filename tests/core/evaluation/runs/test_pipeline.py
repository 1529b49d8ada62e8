"""Pipelines built from the packaged plan."""

from dataclasses import replace

import pytest

from precise_rag import Document, PreciseRAG
from precise_rag.errors import InputError
from precise_rag.evaluation import Pipeline, PipelineSettings, load_plan
from precise_rag.evaluation.runs.plan import DEFAULT_PLAN
from precise_rag.testing import HashEncoder
from precise_rag.trace import Trace
from support.village import TOPICS, dataset


def test_the_packaged_plan_builds() -> None:
    packaged = load_plan(DEFAULT_PLAN)
    assert packaged.baseline == "LangChain, k 4 of 1,000 characters"
    for settings in packaged.pipelines:
        selection = Pipeline(settings, dataset().documents, HashEncoder()).retrieve("Who built the mill?")
        assert any(c.doc_id == "mill" for c in selection.kept)


def test_the_packaged_plan_ends_with_the_library_as_it_comes() -> None:
    settings = load_plan(DEFAULT_PLAN).pipelines[-1]
    diary = Document("diary", " ".join(f"Day {day} was quiet and nothing happened." for day in range(120)))
    documents = (*dataset().documents, diary)
    rag = PreciseRAG.from_documents(documents, encoder=HashEncoder())
    pipeline = Pipeline(settings, documents, HashEncoder())
    n_dropped = 0
    for topic in TOPICS:
        ours, theirs = (one.retrieve(f"Who built the {topic}?") for one in (pipeline, rag))
        assert [c.score for c in ours.kept] == pytest.approx([c.score for c in theirs.kept])
        assert ours.kept[0].id == theirs.kept[0].id, "candidates of equal score may follow in another order"
        n_dropped += len(theirs.decisions) - len(theirs.kept)
    assert n_dropped > 0


def test_a_pipeline_that_asks_a_model_needs_one() -> None:
    settings = PipelineSettings(name="filtered", split={"name": "sentences"}, relevance={})
    with pytest.raises(InputError, match="pipeline 'filtered' asks a language model"):
        Pipeline(settings, dataset().documents, HashEncoder())


def test_a_preset_is_what_precise_rag_does() -> None:
    settings = PipelineSettings(name="as it comes", preset="precise")
    pipeline = Pipeline(settings, dataset().documents, HashEncoder())
    rag = PreciseRAG.from_documents(dataset().documents, encoder=HashEncoder())
    question = "Who built the mill?"
    assert [c.id for c in pipeline.retrieve(question).kept] == [c.id for c in rag.retrieve(question).kept]
    assert PipelineSettings(name="asks", preset="chunkrag").asks_model


def test_parts_of_a_preset_can_be_changed_and_left_out() -> None:
    whole = PipelineSettings(name="whole", preset="precise", select={"min_k": 1, "ratio": 0.0})
    parts = replace(whole, index={"alpha": 1.0}, redundancy=False, evidence=False)
    pipeline = Pipeline(parts, dataset().documents, HashEncoder())
    assert pipeline.built.index.settings.alpha == 1.0
    trace = Trace("Who built the mill?")
    pipeline.retrieve("Who built the mill?", trace)
    assert {stage.name for stage in trace.stages}.isdisjoint({"redundancy", "evidence"})
    assert len({whole.fingerprint, parts.fingerprint, replace(whole, evidence=False).fingerprint}) == 3
