"""Questions in other words: self-contained ones and search queries; and the results of several searches.

Source: ChunkRAG, section 3, query rewriting. Differs: by default the original question is searched, too, so
that a bad rewrite loses nothing that the original finds.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import Any, get_args, get_type_hints

from precise_rag.checks import check_text, items_of, of_kind, shown
from precise_rag.errors import InputError, LLMError
from precise_rag.llm import Budget, load_llm
from precise_rag.llm.driver import adrive, drive
from precise_rag.llm.session import Conversation, Session
from precise_rag.prompts import Prompt, Wording, problem_of
from precise_rag.protocols import LLM
from precise_rag.tokens import estimate_tokens
from precise_rag.trace import Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Candidate, Message, best_first

LONGEST_QUESTION = 400
"""Most characters of a question that a model wrote."""
HISTORY_TOKENS = 2_000
"""Most tokens of a conversation that are shown to a model, estimated; at least its last message is."""
_RANK_OFFSET = 60
_LABEL = re.compile(r"\A\W*(?:\w+[ -]){0,2}(?:question|query)\W{0,4}:", re.I)
_QUESTION_MARKS = {*"?？؟"}


class QueryRewriter:
    """Rewrites questions for search with a language model.

    llm, budget, prices: as for `RelevanceFilter`.
    original: whether the original question is searched, too; default: True. ChunkRAG searches for the
        rewritten one alone.

    A rewrite that fails, or that is not a single short line, is left out with a note in the trace.
    """

    def __init__(
        self,
        llm: Any = None,
        *,
        original: bool = True,
        budget: Budget | None = None,
        prices: PriceTable | None = None,
    ) -> None:
        self.llm = None if llm is None else load_llm(llm)
        self.original = original
        self.budget = of_kind("budget", budget, Budget, Budget)
        self.prices = of_kind("prices", prices, PriceTable, PriceTable.load)

    def queries(self, question: str, *, trace: Trace | None = None) -> tuple[str, ...]:
        """Return the question, if it is searched, too, and the rewritten question if there is one.

        trace: record that the call is added to; default: a new one.
        """
        return drive(self.steps(question, self._session(question, trace)))

    async def aqueries(self, question: str, *, trace: Trace | None = None) -> tuple[str, ...]:
        """`queries` without blocking the event loop."""
        return await adrive(self.steps(question, self._session(question, trace)))

    def steps(
        self, question: str, session: Session, wording: Wording | None = None
    ) -> Conversation[tuple[str, ...]]:
        """Rewrite in the session of a pipeline, see `precise_rag.llm.session`."""
        check_text("the question", question)
        if not question.strip():
            return (question,)
        prompt = (wording or Wording()).rewrite(question)
        written = yield from _one_line("rewrite", self.llm, prompt, session)
        if not written or written.casefold() == question.strip().casefold():
            return (question,)
        return (question, written) if self.original else (written,)

    def _session(self, question: str, trace: Trace | None) -> Session:
        return Session.start(question, budget=self.budget, prices=self.prices, trace=trace)


def make_standalone(
    question: str, history: Sequence[Message], session: Session, wording: Wording
) -> Conversation[str]:
    """Return the question as it can be understood without the conversation before it.

    history: the messages so far, the oldest first. Without any, no model is asked.
    A reply that fails, or that is not a question of a single short line, leaves the question as it is, with
    a note in the trace.
    """
    if not history:
        return question
    totals = accumulate(estimate_tokens(message.content) for message in reversed(history))
    n_recent = sum(1 for _ in takewhile(HISTORY_TOKENS.__ge__, totals))
    prompt = wording.standalone(question, history[-max(n_recent, 1) :])
    written = yield from _one_line("standalone", None, prompt, session)
    if written and _QUESTION_MARKS & {*question} and not _QUESTION_MARKS & {*written}:
        session.trace.notes.append(f"the question was {_LEFT['standalone']}: the reply is no question")
        return question
    return written or question


def read_history(history: Iterable[Any]) -> tuple[Message, ...]:
    """Return the messages of a conversation that have text.

    history: each a (role, content) pair, or a mapping or an object of both, as models and frameworks have
        them. What tools say, and calls of tools without text, is left out.
    Raises InputError for anything else.
    """
    return tuple(filter(None, map(_message, items_of("history", history, object))))


def _message(given: Any) -> Message | None:
    roles = get_args(get_type_hints(Message)["role"])
    pair = given
    if isinstance(given, Mapping):
        pair = (given.get("role"), given.get("content"))
    elif hasattr(given, "role"):
        pair = (given.role, getattr(given, "content", None))
    match pair:
        case (str(role), str(content)) if role in roles:
            return Message(roles[roles.index(role)], content)  # a role may be an Enum's
        case ("tool" | "function", _) | ("assistant", None):
            return None
    raise InputError(
        "history must hold messages: Message(role, content), (role, content) or "
        f'{{"role": …, "content": …}}, with a role of {", ".join(roles)}; got {shown(given)}'
    )


def _one_line(role: str, own: LLM | None, prompt: Prompt, session: Session) -> Conversation[str]:
    """The reply to a prompt, if it is a single short line; else an empty string, with a note."""
    (outcome,) = yield from session.ask(role, session.model(own, f"the stage {role!r}"), [prompt])
    if isinstance(outcome, LLMError):
        problem = str(outcome)
    elif outcome.cut_off:
        problem = "the reply is cut off"
    else:
        line = _LABEL.sub("", outcome.spoken).strip("\"'“”`*{}\n\t ")
        problem = problem_of(line, prompt.mark, "")
        if not problem and "\n" not in line and len(line) <= LONGEST_QUESTION and not prompt.shows(line):
            return line
        problem = problem or "the model did not reply with a single short line"
    session.trace.notes.append(f"the question was {_LEFT[role]}: {problem}")
    return ""


_LEFT = {"rewrite": "not rewritten", "standalone": "not made self-contained"}


def merge_searches(results: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Merge the results of several searches into one list, best first, by reciprocal rank fusion.

    The score of a candidate is the sum of `1 / (60 + rank)` over the searches, on the "rank" scale; its
    other fields are those of the first search that found it. A single search keeps its scores.
    Source: Cormack, Clarke and Buettcher, Reciprocal rank fusion, SIGIR 2009.
    """
    searches = [best_first(candidates) for candidates in results]
    if len(searches) == 1:
        return searches[0]
    first: dict[str, Candidate] = {}
    fused: dict[str, float] = {}
    for candidates in searches:
        for rank, candidate in enumerate(candidates, start=1):
            first.setdefault(candidate.id, candidate)
            fused[candidate.id] = fused.get(candidate.id, 0.0) + 1.0 / (_RANK_OFFSET + rank)
    return best_first(replace(c, score=fused[key], score_scale="rank") for key, c in first.items())
