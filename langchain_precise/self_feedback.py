"""A chain that judges its answers and tries again with more or less context."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from difflib import get_close_matches
from typing import Any, Literal, Self, TypeAlias, cast

from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.utils import AddableDict
from pydantic import ConfigDict, SkipValidation
from typing_extensions import TypedDict

from langchain_precise.convert import from_selection, to_core_documents
from langchain_precise.events import observe, observing
from langchain_precise.sources import RetrieverSource
from precise_rag.answer import Answer
from precise_rag.checks import items_of
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.pipeline import PreciseRAG, check_pipeline
from precise_rag.trace import Record, Trace
from precise_rag.types import Message, Selection, check_query

_KEYS = "filter", "options", "chat_history"
_ROLES = {"human": "user", "ai": "assistant", "system": "system"}


class SelfFeedbackInput(TypedDict, total=False):
    """A question as a mapping; all keys but `input` are optional, others are handed on if not like these.

    input: the question.
    chat_history: the messages before it; a model first makes the question self-contained.
    options: the choices of a multiple-choice question.
    filter: what the documents must meet, for a pipeline over an index.
    """

    input: str
    chat_history: list[BaseMessage]
    options: list[str]
    filter: dict[str, Any]


ChainInput: TypeAlias = LanguageModelInput | BaseMessage | Mapping[str, Any]
"""A question, a `SelfFeedbackInput`, or the messages of a chat in any form that LangChain takes, also as
`{"messages": …}`, of which the last is the question."""


class SelfFeedbackOutput(TypedDict):
    """The output for one question; of a mapping also the input's other keys, as of `create_retrieval_chain`.

    question: the question that was answered, as it can be understood without the chat before it.
    kind: "generated", or "context" if no model was asked, or none of its drafts is an answer.
    context: the documents that the answer was written from, in the order of `PreciseRetriever`.
    citations: the passages that the answer cites: number, doc_id, start, end and text of each.
    choice: the option that was chosen, from 0; None if none was, or there were none.
    score: the judge's, from 1 to 10, or None if the answer was not judged.
    note: why the loop stopped.
    trace: every stage, model call and round, as JSON values.
    """

    question: str
    answer: str
    kind: Literal["generated", "context"]
    context: list[Document]
    citations: list[dict[str, Any]]
    choice: int | None
    score: int | None
    note: str
    trace: dict[str, Any]


class SelfFeedbackChain(RunnableSerializable[ChainInput, SelfFeedbackOutput]):
    """Chain that has its answer judged and tries again with more or less context (SAGE, section VI).

    It configures one `PreciseRAG`, which splits what the retriever finds into sentences, reranks them, drops
    repetitions, grows and selects evidence, answers and judges. The best-judged answer is returned, with its
    own context. Over the index of a `PreciseRetriever`, with its filter: `from_rag(retriever.rag, llm=llm)`.

    retriever: any Runnable from a question to documents; give it a large `k`, of which a part is sent.
    llm: writes the answers; a chat model, or anything else that `load_llm` takes.
    rag: a pipeline to use as it is, with `llm` if that is given, instead of `retriever` and `options`.
    live_final: stream the last draft allowed while the model writes it, and judge it afterwards.
    options: the other arguments of `PreciseRAG`, such as `preset`, `reranker`, `feedback` and `budget`.

    A stream consists of dictionaries that add up to the output of `invoke`: the answer in pieces once it
    is accepted, and the rest.
    """

    rag: SkipValidation[PreciseRAG]
    live_final: bool = False

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def __init__(
        self,
        retriever: RetrieverLike | None = None,
        llm: Any = None,
        *,
        rag: PreciseRAG | None = None,
        live_final: bool = False,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if rag is None:
            if retriever is None or llm is None:
                raise InputError("pass retriever= and llm=, or rag=")
            rag, llm = PreciseRAG(RetrieverSource(retriever), llm, **options), None
        elif retriever is not None or options:
            raise InputError("a rag has its own retriever and stages; pass them to it instead")
        rag = check_pipeline(rag).with_llm(llm)
        super().__init__(rag=rag, live_final=live_final, name=name)  # type: ignore[call-arg]

    @classmethod
    def from_rag(cls, rag: PreciseRAG, **fields: Any) -> Self:
        """Return a chain that answers by `rag`. fields: `llm` (default: its own), `live_final`, `name`."""
        return cls(rag=rag, **fields)

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        llm: Any,
        embeddings: Any = DEFAULT_ENCODER,
        *,
        live_final: bool = False,
        **options: Any,
    ) -> Self:
        """Return a chain over a new index of `documents`.

        embeddings: LangChain's, a core encoder, or the name or path of one; default: the offline encoder.
        options: of `PreciseRAG.from_documents`, such as `preset="chunkrag"`.
        """
        options = {"encoder": load_encoder(embeddings, argument="embeddings")} | options
        rag = PreciseRAG.from_documents(to_core_documents(documents), llm, **options)
        return cls(rag=rag, live_final=live_final)

    @property
    def InputType(self) -> Any:
        """The type of the input, for schemas."""
        return str | SelfFeedbackInput | list[BaseMessage]

    def invoke(
        self, input: ChainInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> SelfFeedbackOutput:
        """Return the best-judged answer, its context and its trace."""
        return self._call_with_config(self._answer, input, config, **kwargs)

    async def ainvoke(
        self, input: ChainInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> SelfFeedbackOutput:
        """Run `invoke` without blocking the event loop."""
        return await self._acall_with_config(self._aanswer, input, config, **kwargs)

    def stream(
        self, input: ChainInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[SelfFeedbackOutput]:
        """Yield dictionaries that add up to the output of `invoke`."""
        return self._transform_stream_with_config(iter([input]), self._stream, config, **kwargs)

    def astream(
        self, input: ChainInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[SelfFeedbackOutput]:
        """Run `stream` without blocking the event loop."""

        async def once() -> AsyncIterator[ChainInput]:
            yield input

        return self._atransform_stream_with_config(once(), self._astream, config, **kwargs)

    def _answer(self, input: ChainInput) -> SelfFeedbackOutput:
        return _output(self.rag.answer(**_arguments(input, observe)), input)

    async def _aanswer(self, input: ChainInput) -> SelfFeedbackOutput:
        async with observing() as observer:
            return _output(await self.rag.aanswer(**_arguments(input, observer)), input)

    def _stream(self, inputs: Iterator[ChainInput]) -> Iterator[SelfFeedbackOutput]:
        given = next(inputs)
        items = self.rag.stream(**_arguments(given, observe), live_final=self.live_final)
        yield from (_piece(item, given) for item in items)

    async def _astream(self, inputs: AsyncIterator[ChainInput]) -> AsyncIterator[SelfFeedbackOutput]:
        given = await anext(inputs)
        async with observing() as observer:
            arguments = _arguments(given, observer)
            async with aclosing(self.rag.astream(**arguments, live_final=self.live_final)) as items:
                async for item in items:
                    yield _piece(item, given)


def _arguments(given: ChainInput, observer: Callable[[Record], None] | None) -> dict[str, Any]:
    """Return the arguments of `PreciseRAG.answer`, with a trace that the observer is told of."""
    question = _read_question(given)
    return question | {"trace": Trace(question["query"], observer=observer)}


def _read_question(given: Any) -> dict[str, Any]:
    """Return the question, its history and what else is given. Raises InputError for no `ChainInput`."""
    given = given.to_messages() if isinstance(given, PromptValue) else given
    if isinstance(given, Mapping):
        asked = given.get("input", given.get("messages"))
        if asked is None or isinstance(asked, Mapping):
            keys = ", ".join(map(str, given)) or "no keys"
            raise InputError(f'the input must have the key "input", with text or messages, got {keys}')
        question = _read_question(asked)
        for key in set(map(str, given)) - set(_KEYS):
            named = get_close_matches(key, _KEYS, 1, 0.8)
            if named or "filter" in key.lower() or key in ("where", "search_kwargs"):
                raise InputError(f"the input has no key {key!r}; did you mean {(named or _KEYS)[0]!r}?")
        before = _messages("chat_history", given.get("chat_history") or ())
        further = {"options": given.get("options") or (), "filter": given.get("filter")}
        return question | {"history": [*before, *question["history"]], **further}
    given = [given] if isinstance(given, BaseMessage) else given
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        messages = _messages("the input", given)
        if not messages or messages[-1].role != "user":
            raise InputError("the last message must be the user's question")
        return {"query": check_query(messages[-1].content), "history": messages[:-1]}
    return {"query": check_query(given), "history": []}


def _messages(name: str, given: Sequence[Any]) -> list[Message]:
    """Return the messages of people and models that have text; those of tools say nothing here."""
    given = [*items_of(name, given, object)]
    try:
        converted = convert_to_messages(given)
    except (NotImplementedError, TypeError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise InputError(f"{name} must hold messages, as LangChain takes them: {why}") from error
    return [
        Message(_ROLES[message.type], str(message.text))  # type: ignore[arg-type]
        for message in converted
        if message.type in _ROLES and message.text
    ]


def _output(answer: Answer, given: ChainInput) -> SelfFeedbackOutput:
    context = from_selection(Selection.keep_all(answer.passages))
    handed_on = given if isinstance(given, Mapping) else {}
    return cast(SelfFeedbackOutput, {**handed_on, **answer.facts, "answer": answer.text, "context": context})


def _piece(item: str | Answer, given: ChainInput) -> SelfFeedbackOutput:
    """Return one part of a stream, which LangChain can add to others: of the answer, or all the rest."""
    whole = {"answer": item} if isinstance(item, str) else _output(item, given)
    parts = {key: value for key, value in whole.items() if (key == "answer") is isinstance(item, str)}
    return cast(SelfFeedbackOutput, AddableDict(parts))
