"""Searching for the candidates of a question, further where few documents or texts take all places."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from precise_rag.filters import as_filter
from precise_rag.llm.session import Conversation, Work
from precise_rag.protocols import Index, Source
from precise_rag.sharing import share_of, share_places
from precise_rag.types import Candidate, best_first

_GROWTH, _LARGEST, _MOST = 4, 16, 6
"""A further search asks for 4 times as many, or leaves documents out; at most 6 of them, for 16 times."""


class Found(NamedTuple):
    """Candidates of one query, best first, and for how many of them there are places."""

    candidates: list[Candidate]
    n_places: int


@dataclass(frozen=True, slots=True)
class VariedSearch:
    """Searches a source until what was found is varied enough for its places: see `precise_rag.sharing`.

    source: what is searched. One of ours is asked to leave out documents whose share is full.
    n_candidates: the places, and the candidates of the first search; a source's own `fetch_k` goes before.
    arguments: further ones of its `search`.
    goes_on: whether it is searched further; otherwise once.
    """

    source: Source
    n_candidates: int
    arguments: Mapping[str, Any]
    goes_on: bool = True

    def steps(self, query: str) -> Conversation[Found]:
        """Search for one query.

        A source that returns another number than it was asked for is searched once, and all have a place.
        """
        n_places = getattr(self.source, "fetch_k", None) or self.n_candidates
        found = best_first((yield self._work(query, n_places)))
        if len(found) != n_places:
            return Found(found, max(n_places, len(found)))
        if self.goes_on:
            found = yield from self._further(query, found, n_places)
        return Found(best_first(found), n_places)

    def _further(self, query: str, found: list[Candidate], n_places: int) -> Conversation[list[Candidate]]:
        """Search on while too few of those found have a place: a longer list each time, or another one.

        Documents that have their share are left out where the source can do that. More candidates are asked
        for at the first of these searches, and when the same documents are left out as at the search before.
        A source that has no more of the others is searched for all documents again.
        """
        can_leave_out = isinstance(self.source, Index)
        top_k = n_places
        left_out: tuple[str, ...] = ()
        for _ in range(_MOST):
            places = share_places(query, found, n_places)
            if places.is_shared:
                break
            pieces = Counter(candidate.doc_id for candidate in found)  # repetitions included
            often = [doc_id for doc_id, n in pieces.items() if n >= share_of(n_places)]
            full = places.full if top_k == n_places else often
            former, left_out = left_out, tuple(dict.fromkeys((*left_out, *full))) if can_leave_out else ()
            if top_k == n_places or left_out == former:
                top_k *= _GROWTH
            if top_k > _LARGEST * n_places:
                break
            more = yield self._work(query, top_k, left_out)
            found = _behind(found, more) if left_out else _behind(best_first(more), found)
            if len(more) < top_k:
                n_texts = len(found) - len(share_places(query, found, n_places).repeats)
                if not left_out or n_texts >= n_places:
                    break
                can_leave_out = False
        return found

    def _work(self, query: str, top_k: int, left_out: Sequence[str] = ()) -> Work:
        arguments = dict(self.arguments)
        if left_out:
            others = as_filter({"$id": {"$nin": list(left_out)}})
            arguments["filter"] = others & as_filter(arguments.get("filter", {}))
        return Work(
            partial(self.source.search, query, top_k, **arguments),
            method(self.source, "asearch", query, top_k, **arguments),
        )


def _behind(first: Sequence[Candidate], more: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of a search, best first, and behind them the new ones of another search.

    Fused scores of two searches cannot be compared: each search scales them by the best that it found. So
    those of the second are scaled to what is left below the first.
    """
    known = {candidate.id for candidate in first}
    new = [candidate for candidate in best_first(more) if candidate.id not in known]
    if not first or not new or new[0].score_scale != "rank":
        return best_first([*first, *new])
    lowest, best = first[-1].score, new[0].score
    factor = lowest / best if lowest > 0 and best > lowest else 1.0
    shift = 0.0 if factor < 1.0 else min(0.0, lowest - best)
    return [*first, *(replace(c, score=c.score * factor + shift) for c in new)]


def method(owner: Any, name: str, *args: Any, **kwargs: Any) -> Callable[[], Awaitable[Any]] | None:
    """Return a method of an object with its arguments; None if the object has no such method."""
    function = getattr(owner, name, None)
    return None if function is None else partial(function, *args, **kwargs)
