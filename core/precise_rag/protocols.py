"""What users may bring: each a protocol with one or two methods."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from precise_rag.types import (
    Candidate,
    Completion,
    Document,
    FloatArray,
    IntArray,
    Message,
    ScoreScale,
    Span,
)


@runtime_checkable
class SentenceSplitter(Protocol):
    """Cuts text into sentences. `name` (with version) goes into cache keys and saved indexes."""

    @property
    def name(self) -> str: ...

    def split(self, text: str) -> list[Span]:
        """Spans that tile `text`: in order, each starting where the last one ended."""
        ...


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors of unit length. `name` identifies the vectors it makes."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """(n, d) float32 rows of unit length, one per text, in order."""
        ...

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """The same for queries, where the model treats them differently."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """(n,) token counts without special tokens, untruncated; also called while another thread encodes."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Scores candidates against a query, all on one known scale."""

    @property
    def name(self) -> str: ...

    @property
    def score_scale(self) -> ScoreScale: ...

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """(n,) scores, one per candidate, in the order given. Higher is better."""
        ...


@runtime_checkable
class LLM(Protocol):
    """A chat model, called synchronously or asynchronously."""

    @property
    def name(self) -> str: ...

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """One completion. `schema` is a JSON schema the text should follow, where the model can."""
        ...

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion: ...


@runtime_checkable
class StreamingLLM(LLM, Protocol):
    """A chat model that can also give its answer piece by piece.

    The pieces join to the whole text. A Completion may come last, to say what the call used; without
    it, tokens are estimated.
    """

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]: ...

    def astream(self, messages: Sequence[Message]) -> AsyncIterator[str | Completion]: ...


@runtime_checkable
class Index(Protocol):
    """A searchable collection of documents that can grow, shrink and be saved."""

    def __len__(self) -> int: ...

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        """At most `top_k` candidates, best first. Raises EmptyIndexError if nothing is indexed."""
        ...

    def add(self, documents: Iterable[Document]) -> None: ...

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents by id. Raises InputError, changing nothing, if an id is unknown."""
        ...

    def save(self, path: str | Path) -> None: ...

    @classmethod
    def load(cls, path: str | Path, encoder: Encoder) -> Self: ...
