"""The search of sentences: its arguments, declared and checked in one place for every index of sentences."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from precise_rag.filters import Filter, as_filter
from precise_rag.index.candidates import limit_tokens
from precise_rag.index.queries import Searched, check_search
from precise_rag.index.sentence_scheme import Returns, check_returns
from precise_rag.types import Candidate, FloatArray


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
    @abstractmethod
    def returns(self) -> Returns:
        """Default of `returns` in `search`."""

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
        returns = check_returns(returns or self.returns)
        wanted = None if filter is None else as_filter(filter)
        asked = SentenceQuery(query, top_k, wanted, vector, alpha, returns, merge_adjacent)
        candidates = self._find(asked)
        return candidates if max_tokens is None else limit_tokens(candidates, max_tokens)
