"""Postprocessors and compressors decide as the core does: one contract for both frameworks and every part."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.prompts import format_document
from llama_index.core.utils import get_tokenizer

from langchain_precise import DOCUMENT_PROMPT
from precise_rag import (
    Candidate,
    EvidenceExtractor,
    GradientSelector,
    InputError,
    PreciseRAG,
    RedundancyFilter,
    RelevanceFilter,
    read_facts,
)
from precise_rag.encoders.local import count_packaged_tokens
from precise_rag.errors import ScoreScaleError
from precise_rag.facts import candidate_facts
from precise_rag.index import HybridIndex
from precise_rag.rerank import load_reranker, rerank
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.types import Selection
from support.alike import assert_alike
from support.documents import read_cases
from support.frameworks import FRAMEWORKS, LANGCHAIN, LLAMAINDEX, each_framework
from support.rerankers import BROUGHT, QUESTION, logit
from support.scored import Scored
from support.segmentation import any_text
from support.velm import (
    CORE,
    QUESTIONS,
    TEXTS,
    assert_same_decisions,
    assert_same_results,
    documents,
    retriever,
    wheels_are_relevant,
)

PACKAGED = load_reranker("packaged")
WHEELS = ScriptedLLM(wheels_are_relevant)


def gradient(query, found):
    selector = GradientSelector(min_k=1, ratio=0.6, max_tokens=70, share_of_best=0.25, min_keep=1)
    return selector.select(rerank(query, found, PACKAGED))


def best_three(query, found):
    ranked = enumerate(rerank(query, found, PACKAGED), start=1)
    return Selection.of((one, rank < 4, f"rank {rank} of {len(found)} by packaged") for rank, one in ranked)


PARTS: dict[str, tuple[dict[str, Any], Callable[[str, list[Candidate]], Any]]] = {
    "Rerank": ({"reranker": "packaged", "top_n": 3}, best_three),
    "GradientSelection": ({"reranker": "packaged", "min_k": 1, "ratio": 0.6, "max_tokens": 70}, gradient),
    "Redundancy": ({}, lambda q, c: RedundancyFilter().filter(c)),
    "RelevanceFilter": ({"llm": WHEELS}, lambda q, c: RelevanceFilter(WHEELS).filter(q, c)),
    "Evidence": (
        {"reranker": "packaged", "min_keep": 1},
        lambda q, c: EvidenceExtractor(PACKAGED).extract(q, c),
    ),
}
"""The settings of each part, and what the core decides."""


def as_written(piece):
    if hasattr(piece, "get_content"):
        return piece.get_content("llm")
    return format_document(piece, DOCUMENT_PROMPT)


@settings(max_examples=30)
@given(text=any_text, limit=st.integers(1, 150), own=st.sampled_from([None, get_tokenizer(), str]))
def test_nothing_is_sent_over_its_limit_as_it_is_written(text, limit, own):
    """By parts, retrievers and prompts of ours, in tokens, or in characters, by the counter that is given."""
    text = "\n\n".join(["# Mills", *TEXTS.values(), text])
    options = {"max_tokens": limit, "count_tokens": own and (lambda shown: len(own(shown)))}
    count = options["count_tokens"] or (lambda shown: count_packaged_tokens([shown])[0])
    for framework in (LLAMAINDEX, LANGCHAIN):
        given = [framework.piece(text, "d", title="A mill"), framework.piece(TEXTS["mill"], "e")]
        parts = [
            framework.part(one, reranker="packaged", **options) for one in ("Evidence", "GradientSelection")
        ]
        found = [framework.cut(part, given, QUESTIONS[0]) for part in parts]
        one = framework.document(text, "d", title="A mill")
        over = framework.retriever.from_documents([one], HashEncoder(), reranker="packaged", **options)
        for sent in (*found, framework.find(over, QUESTIONS[0])):
            assert sum(count(as_written(piece)) for piece in sent) <= limit
    rag, llm = over.rag, ScriptedLLM(["A mill."])
    answer = PreciseRAG(rag.index, llm, feedback=None, reranker="packaged", **options).answer(QUESTIONS[0])
    for call in answer.trace.calls:
        assert count(call.messages[1].content.rpartition("\n\n")[0]) <= limit


IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "Rerank": {"top_n": 0},
    "GradientSelection": {"min_k": 0},
    "Redundancy": {"similarity_threshold": 2.0},
    "RelevanceFilter": {"llm": WHEELS, "batch_size": 0},
    "Evidence": {"min_score": 3},
}
each_part = pytest.mark.parametrize("name", PARTS)


def made(framework, name, **settings):
    return framework.part(name, **{**PARTS[name][0], **settings})


@each_framework
@each_part
async def test_decisions_and_results_are_those_of_the_core_also_without_blocking(framework, name):
    query, over = QUESTIONS[0], retriever(framework)
    found, given = framework.find(over, query), over.select(query).kept
    if name == "Evidence":  # it cuts whole texts
        found = documents(framework, pieces=True)
        places = [(d.id, 0, len(d.text), d.text, -float(i), "rank") for i, d in enumerate(CORE)]
        given = tuple(Candidate(*one, metadata=d.metadata) for one, d in zip(places, CORE, strict=True))
    part, expected, before = made(framework, name), PARTS[name][1](query, given), copy.deepcopy(found)
    kept = framework.cut(part, found, query)
    assert kept
    assert [framework.text(piece) for piece in kept] == [one.text for one in expected.kept]
    assert [framework.score(p) for p in kept] == pytest.approx([one.score for one in expected.kept], abs=1e-6)
    if name != "Evidence":
        assert_same_results(framework, kept, expected)
        assert_same_decisions(part.select(found, query), expected)
    assert_alike(await framework.acut(part, found, query), kept)
    saved = pickle.dumps(part)
    assert name == "RelevanceFilter" or len(saved) < 2_000
    assert_alike(framework.cut(pickle.loads(saved), found, query), kept)
    for piece in kept:
        framework.metadata(piece)["title"] = "changed"
    assert found == before


@each_framework
@each_part
def test_of_nothing_nothing_is_kept_and_impossible_settings_are_refused_at_once(framework, name):
    assert framework.cut(made(framework, name), [], "q") == []
    setting = list(IMPOSSIBLE[name])[-1]
    with pytest.raises(InputError, match=setting):
        framework.part(name, **IMPOSSIBLE[name])
    with pytest.raises(InputError, match=r"no argument 'mink'; it has .*(?:min_keep|top_n|threshold)"):
        made(framework, name, mink=3)
    assert type(made(framework, name)).model_json_schema()["properties"]


@each_framework
def test_a_copy_with_another_setting_works_by_it(framework):
    with pytest.raises(InputError, match="score_scale='logit': the scores of packaged are"):
        framework.part("Rerank", reranker="packaged", score_scale="logit")
    part = made(framework, "Rerank").model_copy(update={"top_n": 1})
    assert len(framework.cut(part, documents(framework, pieces=True), QUESTIONS[0])) == 1


@each_framework
@each_part
def test_every_decision_is_announced(framework, name):
    found = framework.find(retriever(framework), QUESTIONS[0])
    part = made(framework, name)
    stages = framework.stages_of_cut(part, found, QUESTIONS[0])
    assert stages[-1]["stage"] == type(part).__name__
    selection = part.select(found, QUESTIONS[0])
    assert [(one["kept"], one["reason"]) for one in stages[-1]["candidates"]] == [
        (decision.kept, decision.reason) for decision in selection.decisions
    ]
    assert [one["stage"] for one in stages[:-1]] == (["rerank"] if name == "GradientSelection" else [])


@pytest.mark.parametrize(("scores", "options", "n_kept"), read_cases("documents.json", "scores to cut"))
def test_scores_of_others_such_as_sage_s_figures_are_cut_at_the_drop(scores, options, n_kept):
    selections = []
    for framework in FRAMEWORKS.values():
        part = framework.part("GradientSelection", **options)
        pieces = [framework.piece("x", f"{i:02}", score) for i, score in enumerate(scores)]
        selections.append(part.select(pieces, "q"))
    assert_same_decisions(*selections)
    assert [c.score for c in selections[0].kept] == scores[:n_kept]


def pieces_of(framework, *texts, score=None):
    return [framework.piece(text, f"n{i}", score) for i, text in enumerate(texts)]


@each_framework
def test_scores_of_unknown_meaning_are_reranked_once_and_the_former_are_kept(framework):
    reranker = Scored({"a": 0.02, "b": 0.9, "c": 0.8}.__getitem__)
    found = pieces_of(framework, "a", "b", "c", score=0.5)
    part = framework.part("GradientSelection", reranker=reranker, min_k=1, min_keep=1)
    kept = framework.cut(part, found, "q")
    assert [framework.id(piece) for piece in kept] == ["n1", "n2"]
    assert [framework.score(piece) for piece in kept] == pytest.approx([0.9, 0.8])
    assert type(framework.score(kept[0])) is float
    facts = read_facts(kept[0])
    facts.pop("foreign_score", None)
    expected = Candidate("n1", 0, 1, "b", 0.9, "probability", scores={"retrieval": -1.0})
    assert_alike(facts, candidate_facts(expected, "among the first 1 (min_k)"))
    reranker.read = []
    assert [framework.id(piece) for piece in framework.cut(part, kept, "q")] == ["n1", "n2"]
    assert reranker.read == [], "once"


@each_framework
def test_without_a_reranker_scores_without_ratios_are_refused_with_advice(framework):
    with pytest.raises(ScoreScaleError, match="rerank first"):
        framework.cut(framework.part("GradientSelection", reranker=None), pieces_of(framework, "a", "b"), "q")
    cosine = framework.part("GradientSelection", reranker=None, score_scale="cosine")
    with pytest.raises(ScoreScaleError, match="cosine"):
        framework.cut(cosine, pieces_of(framework, "a", score=0.5), "q")


@each_framework
def test_of_repetitions_without_scores_the_earlier_stays_and_an_encoder_tells_paraphrases(framework):
    text, part = "Ada Brandt built the town clock.", framework.part("Redundancy")
    kept = framework.cut(part, pieces_of(framework, text, "Rye bread keeps.", text), "q")
    assert [framework.id(piece) for piece in kept] == ["n0", "n1"]
    assert framework.name == "langchain" or [piece.score for piece in kept] == [None, None]
    found = pieces_of(framework, text, "The clock of the town was built by Ada Brandt.")
    assert len(framework.cut(part, found, "q")) == 2
    settings = {framework.encoder: HashEncoder(), "similarity_threshold": 0.6, "prefilter": 0.1}
    kept = framework.cut(framework.part("Redundancy", **settings), found, "q")
    assert [framework.id(piece) for piece in kept] == ["n0"]


@each_framework
def test_evidence_has_its_place_the_metadata_of_its_text_and_the_headings_above_it(framework):
    text = (
        "# Yard\n\n## Pump M-7\n\nChange the oil every month. Ask Ada for the key.\n\n"
        "## Saw\n\nSharpen the blade every year. Ask Ben for the file."
    )
    query = "How often is the oil of the pump M-7 changed?"
    part = framework.part("Evidence", reranker="packaged", share_of_best=1.0, min_keep=1)
    found = [framework.piece("Herring is cheap.", "fish"), framework.piece(text, "yard", source="y.md")]
    best = max(framework.cut(part, found, query), key=framework.score)
    facts = read_facts(best)
    assert "oil" in framework.text(best)
    assert text[facts["start"] : facts["end"]] == framework.text(best)
    assert (facts["doc_id"], facts["score"]) == ("yard", framework.score(best))
    assert facts["above"][-2:] == ["Yard", "Pump M-7"]
    assert framework.metadata(best)["section"] == "Yard > Pump M-7"
    assert framework.metadata(best)["source"] == "y.md"
    assert framework.cut(made(framework, "Evidence", min_score=1.0, min_keep=0), found, query) == []


@each_framework
def test_one_part_serves_many_threads(framework):
    part = framework.part("GradientSelection", min_k=1)
    found = pieces_of(framework, *[f"word{i} fox" for i in range(20)])

    def best(i):
        return framework.id(framework.cut(part, found, f"word{i} cat")[0])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(best, range(20))) == [f"n{i}" for i in range(20)]


# Rerankers that users bring: any, in every part that takes one, and only its order counts.

INDEX = HybridIndex.build(CORE, HashEncoder())


def used(framework, part, reranker):
    """The texts that a part with the reranker returns."""
    if part == "PreciseRetriever":
        over = framework.retriever.from_index(INDEX, reranker=reranker)
        return [framework.text(piece) for piece in framework.find(over, QUESTION)]
    pieces = [framework.piece(text, name, 0.5) for name, text in TEXTS.items() if text.strip()]
    return [
        framework.text(p) for p in framework.cut(framework.part(part, reranker=reranker), pieces, QUESTION)
    ]


@each_framework
@pytest.mark.parametrize("part", ["PreciseRetriever", "Evidence", "GradientSelection", "Rerank"])
def test_rerankers_with_one_order_give_one_result(framework, part):
    first, *others = (used(framework, part, make()) for make in BROUGHT.values())
    assert first
    assert others == [first] * (len(BROUGHT) - 1)
    if part == "Rerank":
        assert first == sorted(first, key=lambda text: -logit(QUESTION, text))
