"""The interfaces that users can implement to replace a part of the library."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from precise_rag.filters import Filter
from precise_rag.types import (
    Candidate,
    Completion,
    Document,
    FloatArray,
    IntArray,
    Message,
    Schema,
    ScoreScale,
    Selection,
    Span,
    Stretch,
)


@runtime_checkable
class SentenceSplitter(Protocol):
    """Splits text into sentences."""

    @property
    def name(self) -> str:
        """Name and version of the splitter."""

    def split(self, text: str) -> list[Span]:
        """Split `text` into spans that cover it: in order, each starting where the previous one ends."""


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors of unit length."""

    @property
    def name(self) -> str:
        """Identifies the vectors: encoders with the same name must return the same vectors."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Encode n texts. Returns (n, d) float32 rows of unit length, in order."""

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries. Same as `encode` unless the model treats queries differently."""

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Count the tokens of n texts, without special tokens and truncation. Returns (n,) int64.

        Must be safe to call while another thread encodes.
        """


@runtime_checkable
class Reranker(Protocol):
    """Scores candidates for a query.

    One whose scores are measured probabilities says so by `is_calibrated = True`. Of any other, our stages
    use only the order, see `LevelledReranker`.
    """

    @property
    def name(self) -> str: ...

    @property
    def score_scale(self) -> ScoreScale:
        """The scale of all scores."""

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Score n candidates for a query. Returns (n,) scores in the order given; higher is better."""


@runtime_checkable
class LLM(Protocol):
    """A chat model with a synchronous and an asynchronous call.

    It may also have `max_call_seconds` (default: 600), after which a call is given up, and `max_retries`.
    """

    @property
    def name(self) -> str: ...

    def complete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """Return the model's reply to `messages`.

        schema: JSON schema for the reply; a model without structured output may ignore it.
        """

    async def acomplete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion: ...


@runtime_checkable
class StreamingLLM(LLM, Protocol):
    """A chat model that can also stream its reply.

    `stream` and `astream` yield pieces of text that join to the whole reply. The last item may be a
    Completion with the call's token counts; without one, tokens are estimated.
    """

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]: ...

    def astream(self, messages: Sequence[Message]) -> AsyncIterator[str | Completion]: ...


@runtime_checkable
class Source(Protocol):
    """What a pipeline searches: an index, or anything else that finds candidates.

    It may also have `asearch`, an asynchronous `search`.
    """

    def search(self, query: str, top_k: int, /) -> list[Candidate]:
        """Return at most `top_k` candidates, best first. A filter is passed as `filter=`, if there is one."""


@runtime_checkable
class Index(Protocol):
    """A searchable collection of documents that can grow and shrink."""

    def __len__(self) -> int: ...

    def search(
        self, query: str, top_k: int = 10, *, filter: Filter | Mapping[str, Any] | None = None
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first, whose documents meet `filter`.

        filter: see `as_filter`; default: all documents. It must be evaluated before candidates are ranked,
            so that `top_k` of them are found while there are that many.
        Raises EmptyIndexError if nothing is indexed.
        """

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents; a document with a known id replaces the old one."""

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents by id. Raises InputError and changes nothing if an id is unknown."""


@runtime_checkable
class Neighbours(Protocol):
    """Knows the sentences around a sentence: an index of sentences, or the texts that a store returned.

    A pipeline that grows evidence searches such an index with `returns="sentence"`.
    """

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the stretches of `sentences` with up to `reach` sentences before and after each.

        Each sentence is in one stretch; stretches of one document have a sentence between them. A
        candidate that is not a sentence known here is in none.
        """


@runtime_checkable
class Rewriter(Protocol):
    """Writes the queries that a question is searched with.

    It may also have `aqueries`, an asynchronous `queries`.
    """

    def queries(self, question: str, /) -> Sequence[str]:
        """Return the queries, the question itself among them if it is to be searched."""


@runtime_checkable
class RepetitionFilter(Protocol):
    """Drops candidates that repeat others."""

    def filter(self, candidates: Sequence[Candidate], /) -> Selection:
        """Return one decision per candidate, best first."""


@runtime_checkable
class CandidateFilter(Protocol):
    """Drops candidates that do not fit the question.

    It may also have `afilter`, an asynchronous `filter`.
    """

    def filter(self, query: str, candidates: Sequence[Candidate], /) -> Selection:
        """Return one decision per candidate, best first."""


@runtime_checkable
class Grower(Protocol):
    """Adds sentences around the candidates, or joins candidates to longer pieces."""

    def grow(self, query: str, candidates: Sequence[Candidate], /) -> Selection:
        """Return the candidates and what was added to them, best first."""


@runtime_checkable
class SentenceGrower(Grower, Protocol):
    """A grower that takes the sentences around a candidate from a source.

    source: knows them. None: a pipeline splits the texts that it found, and the grower grows `over` these.
    """

    source: Neighbours | None

    def over(self, source: Neighbours) -> Grower:
        """Return the same grower with another source."""


@runtime_checkable
class Selector(Protocol):
    """Decides how many of the candidates are sent."""

    def select(self, candidates: Sequence[Candidate], /, *, query: str = "", step: int = 0) -> Selection:
        """Return one decision per candidate, best first.

        step: what the feedback loop asks for: the higher above 0, the more candidates; below 0, the fewer.
        """
