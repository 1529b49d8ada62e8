import pytest

from precise_rag.errors import LLMServerError
from precise_rag.llm import Budget
from precise_rag.rewriting import QueryRewriter, merge_searches
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Candidate

QUESTION = "what does Henry F. do for work?"


def test_the_question_is_searched_beside_its_rewrite() -> None:
    llm = ScriptedLLM(['"Henry Feilden occupation"\n'])
    trace = Trace(QUESTION)
    assert QueryRewriter(llm).queries(QUESTION, trace=trace) == (QUESTION, "Henry Feilden occupation")
    assert QUESTION in llm.calls[0].text
    assert [(call.role, call.prompt_version) for call in trace.calls] == [("rewrite", "rewrite/1")]
    assert trace.notes == []


async def test_async_gives_the_same() -> None:
    rewriter = QueryRewriter(ScriptedLLM(["Henry Feilden occupation"]))
    assert await rewriter.aqueries(QUESTION) == (QUESTION, "Henry Feilden occupation")


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (LLMServerError("still answers 500"), "the question was not rewritten: still answers 500"),
        (
            "Sure!\nHere it is.",
            "the question was not rewritten: the model did not reply with a single short line",
        ),
        ("word " * 200, "the question was not rewritten: the model did not reply with a single short line"),
        ("' '", "the question was not rewritten: the model did not reply with a single short line"),
    ],
)
def test_without_a_usable_rewrite_only_the_question_is_searched(reply: str | Exception, note: str) -> None:
    trace = Trace(QUESTION)
    assert QueryRewriter(ScriptedLLM([reply])).queries(QUESTION, trace=trace) == (QUESTION,)
    assert trace.notes == [note]


def test_a_rewrite_equal_to_the_question_is_not_searched() -> None:
    assert QueryRewriter(ScriptedLLM([QUESTION.upper()])).queries(QUESTION) == (QUESTION,)


def test_a_budget_without_room_leaves_the_question_alone() -> None:
    llm = ScriptedLLM([])
    assert QueryRewriter(llm, budget=Budget(tokens=1)).queries(QUESTION) == (QUESTION,)


def found(*names: str, raw: float = 0.0) -> list[Candidate]:
    return [
        Candidate(name, 0, 1, "x", 1.0 - i / 10, "cosine", scores={"dense": raw})
        for i, name in enumerate(names)
    ]


def test_searches_are_merged_by_rank() -> None:
    merged = merge_searches([found("a", "b", "c", raw=0.7), found("c", "d", raw=0.2)])
    assert [c.doc_id for c in merged] == ["c", "a", "b", "d"]
    assert [c.score for c in merged] == pytest.approx([1 / 63 + 1 / 61, 1 / 61, 1 / 62, 1 / 62])
    assert [c.scores["dense"] for c in merged] == pytest.approx([0.7, 0.7, 0.7, 0.2])
    assert {c.score_scale for c in merged} == {"rank"}


def test_one_search_stays_as_it_is() -> None:
    alone = found("a", "b")
    assert merge_searches([alone]) == alone
    assert merge_searches([[], []]) == []


def test_a_blank_question_is_not_rewritten() -> None:
    assert QueryRewriter(ScriptedLLM([])).queries(" ") == (" ",)
