"""What a conversation with models is made of: the requests it yields, and the session they count in.

A conversation is a generator that does no input or output. It yields a request, is sent the reply, and
returns its result:

    Ask  → one CallOutcome for each prompt
    Work → what the function returns

What fails otherwise is thrown into the generator. `llm.driver` runs conversations.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from precise_rag.checks import of_kind
from precise_rag.errors import InputError, LLMError
from precise_rag.llm.budget import Budget, Spending
from precise_rag.prompts import Prompt
from precise_rag.protocols import LLM
from precise_rag.trace import Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion

CallOutcome = Completion | LLMError
"""What a call returned, or why it failed."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The budget, prices, trace and model that all stages of one question share.

    spending: what is used and left of the budget.
    llm: the model for stages that have none of their own.
    reserved: calls that a stage before the answer leaves for it.
    """

    spending: Spending
    prices: PriceTable
    trace: Trace
    llm: LLM | None = None
    reserved: int = 0

    @classmethod
    def start(cls, question: str, *, budget: Budget, prices: PriceTable, trace: Trace | None = None) -> Self:
        """Start the session of a question; its budget's seconds begin now."""
        own = of_kind("trace", trace, Trace, lambda: Trace(question))
        return cls(spending=budget.start(), prices=prices, trace=own)

    def model(self, llm: LLM | None, stage: str) -> LLM:
        """Return the model of a stage, by default the session's. Raises InputError if there is neither."""
        llm = llm or self.llm
        if llm is None:
            raise InputError(f"{stage} asks a language model, and there is none; pass llm=")
        return llm

    def ask(
        self, role: str, llm: LLM, prompts: Sequence[Prompt], *, max_concurrency: int = 1
    ) -> "Conversation[list[CallOutcome]]":
        """Ask a model on behalf of a stage before the answer. Returns one outcome for each prompt."""
        outcomes: list[CallOutcome] = yield Ask(
            session=self,
            role=role,
            llm=llm,
            prompts=prompts,
            reserve=self.reserved,
            max_concurrency=max_concurrency,
        )
        return outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Asks a model to complete prompts.

    role: what the calls are for, as in the trace. round: the feedback round, from 1.
    reserve: calls that the budget must still allow afterwards.
    max_concurrency: calls at a time.
    live: show the only reply to the reader while it is written. shown: its pieces that were shown so far.
    """

    session: Session
    role: str
    llm: LLM
    prompts: Sequence[Prompt]
    round: int | None = None
    reserve: int = 0
    max_concurrency: int = 1
    live: bool = False
    shown: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Work:
    """Asks to run a function that takes a while.

    arun: the same as a coroutine function; default: `run` in a thread.
    """

    run: Callable[[], Any]
    arun: Callable[[], Awaitable[Any]] | None = None


Request = Ask | Work
Conversation = Generator[Request, Any, Result]
