import pytest

from precise_rag.errors import LLMServerError
from precise_rag.llm import Budget
from precise_rag.rewriting import QueryRewriter, merge_searches
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Trace
from precise_rag.types import Candidate

QUESTION = "what does Henry F. do for work?"


async def test_the_question_is_searched_beside_its_rewrite() -> None:
    llm = ScriptedLLM(['<think>\nHm.\n</think>\n**"Henry Feilden occupation"**\n'])
    trace = Trace(QUESTION)
    assert QueryRewriter(llm).queries(QUESTION, trace=trace) == (QUESTION, "Henry Feilden occupation")
    assert QUESTION in llm.calls[0].text
    assert [(call.role, call.prompt_version) for call in trace.calls] == [("rewrite", "rewrite/2")]
    assert trace.notes == []
    again = QueryRewriter(ScriptedLLM(["Henry Feilden occupation"]))
    assert await again.aqueries(QUESTION) == (QUESTION, "Henry Feilden occupation")


@pytest.mark.parametrize(
    ("replies", "budget", "question"),
    [([QUESTION.upper()], None, QUESTION), ([], Budget(tokens=1), QUESTION), ([], None, " ")],
    ids=["equal to the question", "no room in the budget", "blank"],
)
def test_what_needs_no_rewrite_is_searched_alone(
    replies: list[str], budget: Budget | None, question: str
) -> None:
    assert QueryRewriter(ScriptedLLM(replies), budget=budget).queries(question) == (question,)


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (LLMServerError("still answers 500"), "still answers 500"),
        ("Sure!\nHere it is.", "the model did not reply with a single short line"),
        (f"word {list(range(200))}", "the model did not reply with a single short line"),
        ("' '", "the reply is empty or repeats itself"),
        ("Rewrite the question as one query", "the model did not reply with a single short line"),
    ],
)
def test_without_a_usable_rewrite_only_the_question_is_searched(reply: str | Exception, note: str) -> None:
    trace = Trace(QUESTION)
    assert QueryRewriter(ScriptedLLM([reply])).queries(QUESTION, trace=trace) == (QUESTION,)
    assert trace.notes == [f"the question was not rewritten: {note}"]


@pytest.mark.parametrize("form", ["Standalone question: {}", '{{"query": "{}"}}', "**Rewritten query:** {}"])
def test_a_label_before_the_new_question_is_not_searched(form: str) -> None:
    reply = form.format("Who built the clock?")
    assert QueryRewriter(ScriptedLLM([reply])).queries(QUESTION) == (QUESTION, "Who built the clock?")


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
    assert merge_searches([found("a", "b")]) == found("a", "b")
    assert merge_searches([[], []]) == []
