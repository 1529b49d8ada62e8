"""The search of sentences: its arguments, checked in one place for every index, and its candidates."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from precise_rag.checks import check_number, check_text, items_of
from precise_rag.encoders import FrameworkEncoder
from precise_rag.errors import InputError
from precise_rag.facts import copied
from precise_rag.filters import Filter, as_filter
from precise_rag.index.settings import check_choice
from precise_rag.types import Candidate, Document, FloatArray, check_query
from precise_rag.vectors import unit_rows

Returns = Literal["sentence", "passage", "mixed"]
"""What a search returns for a scored sentence: the "sentence"; the "passage" around it, with the score of its
best sentence; or "mixed": the passage for the best sentence, and single sentences after it."""


def unique_documents(documents: Iterable[Document]) -> list[Document]:
    """The documents with copies of their metadata. Raises InputError for other types, and two of one id."""
    given: dict[str, Document] = {}
    for document in items_of("documents", documents, Document):
        if document.id in given:
            raise InputError(f"two documents have the id {document.id!r}; give each its own id")
        given[document.id] = replace(document, metadata=copied(document.metadata))
    return list(given.values())


def check_search(query: str, top_k: int) -> None:
    """Raise InputError unless the query is a string and `top_k` a whole number of at least 1."""
    check_text("the query", query)
    check_number("top_k", top_k, least=1, whole=True)


def query_direction(vector: Any, dimension: int) -> FloatArray:
    """(d,) float32 query vector of unit length. Raises InputError if its length is not `dimension`."""
    try:
        row = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"the query's vector must be numbers: {error}") from error
    if row.shape != (dimension,) or not np.isfinite(row).all():
        raise InputError(
            f"the query's vector must be finite numbers of shape {(dimension,)} as those indexed, "
            f"got {row.shape}"
        )
    direction: FloatArray = unit_rows(row[None])[0]
    return direction


class Searched(ABC):
    """An index that can be searched, also without blocking an event loop."""

    settings: Any
    search: Callable[..., list[Candidate]]

    async def asearch(self, query: str, top_k: int = 10, **options: Any) -> list[Candidate]:
        """Run `search` without blocking the event loop, with the same options.

        The query is encoded by the asynchronous method of a framework's embedding object, if it is one.
        """
        encoder = getattr(self, "encoder", None)
        if isinstance(encoder, FrameworkEncoder) and options.get("vector") is None:
            (options["vector"],) = await encoder.aencode_queries([check_query(query)])
        return await asyncio.to_thread(self.search, query, top_k, **options)


class SentenceQuery(NamedTuple):
    """The checked arguments of a search; see `SentenceSearch.search`."""

    text: str
    top_k: int
    filter: Filter | None
    vector: FloatArray | None
    alpha: float | None
    returns: Returns
    merge_adjacent: bool


class SentenceSearch(Searched):
    """An index of sentences that can be searched, in memory or in a database."""

    @property
    def returns(self) -> Returns:
        """Default of `returns` in `search`."""
        returns: Returns = getattr(self.settings, "returns", "sentence")
        return returns

    @abstractmethod
    def _find(self, asked: SentenceQuery) -> list[Candidate]:
        """The candidates of a search, best first, with no limit on their tokens."""

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        filter: Filter | Mapping[str, Any] | None = None,
        vector: FloatArray | None = None,
        alpha: float | None = None,
        returns: Returns | None = None,
        merge_adjacent: bool = False,
        max_tokens: int | None = None,
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first.

        query: the query as text.
        top_k: maximum number of candidates; at least 1.
        filter: what the documents of all candidates must meet, see `as_filter`; default: nothing.
        vector: (d,) the query's vector; default: `query` is encoded.
        alpha: weight of a sentence against its context (0 to 1); default: the index's setting. The vectors
            in a database are weighted by it, so there only that one is allowed.
        returns: "sentence", "passage" or "mixed", see `Returns`; default: the index's `returns`.
        merge_adjacent: join neighbouring sentences of a passage into one candidate.
        max_tokens: limit on the tokens of all candidates; one that does not fit is skipped.
        Raises EmptyIndexError if the index holds no text.
        """
        check_search(query, top_k)
        returns = returns or self.returns
        check_choice("returns", returns, get_args(Returns))
        wanted = None if filter is None else as_filter(filter)
        asked = SentenceQuery(query, top_k, wanted, vector, alpha, returns, merge_adjacent)
        candidates = self._find(asked)
        return candidates if max_tokens is None else limit_tokens(candidates, max_tokens)


def merge_neighbours(candidates: Sequence[Candidate], texts: Mapping[str, str]) -> list[Candidate]:
    """Join neighbouring candidates of the same passage, and sort by score.

    texts: of the documents, by id.
    A joined candidate has the text in document order and the best score of its parts.
    """
    merged: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.doc_id, c.start)):
        if merged and _adjacent(merged[-1], candidate, texts):
            merged[-1] = _joined(merged[-1], candidate, texts)
        else:
            merged.append(candidate)
    return sorted(merged, key=lambda c: -c.score)


def limit_tokens(candidates: Sequence[Candidate], max_tokens: int) -> list[Candidate]:
    """Keep the candidates that fit into `max_tokens` tokens, taken in order; skip those that do not fit."""
    if max_tokens < 1:
        raise InputError(f"max_tokens must be at least 1, got {max_tokens}")
    kept, left = [], max_tokens
    for candidate in candidates:
        assert candidate.n_tokens is not None
        if candidate.n_tokens <= left:
            kept.append(candidate)
            left -= candidate.n_tokens
    return kept


def _adjacent(left: Candidate, right: Candidate, texts: Mapping[str, str]) -> bool:
    if left.doc_id != right.doc_id or left.passage != right.passage:
        return False
    return not texts[left.doc_id][left.end : right.start].strip()


def _joined(left: Candidate, right: Candidate, texts: Mapping[str, str]) -> Candidate:
    best = max(left, right, key=lambda c: c.score)
    text = texts[left.doc_id][left.start : right.end]
    n_tokens = (left.n_tokens or 0) + (right.n_tokens or 0)
    return replace(best, start=left.start, end=right.end, text=text, n_tokens=n_tokens)
