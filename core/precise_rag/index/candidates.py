"""Changes to the candidates of a sentence search: wider texts, merged neighbours, a token limit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Collection
from precise_rag.index.arrays.groups import Groups
from precise_rag.types import Candidate, Document, IntArray


def widen_to_passages(
    candidates: Sequence[Candidate], rows: IntArray, passages: Groups, collection: Collection
) -> list[Candidate]:
    """Give each candidate the text of its whole passage.

    candidates: single sentences.
    rows: (n,) row of each candidate in the collection.
    passages: the rows of each passage.
    """
    tokens = passages.sums(collection.columns["n_tokens"])[passages.of_row[rows]]
    wide = []
    for candidate, n_tokens in zip(candidates, tokens, strict=True):
        assert candidate.passage is not None
        start, end = candidate.passage
        text = collection.documents[candidate.doc_id].text[start:end]
        wide.append(replace(candidate, start=start, end=end, text=text, n_tokens=int(n_tokens)))
    return wide


def merge_neighbours(candidates: Sequence[Candidate], documents: Mapping[str, Document]) -> list[Candidate]:
    """Join neighbouring candidates of the same passage, and sort by score.

    A joined candidate has the text in document order and the best score of its parts.
    """
    merged: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.doc_id, c.start)):
        if merged and _adjacent(merged[-1], candidate, documents):
            merged[-1] = _joined(merged[-1], candidate, documents)
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


def _adjacent(left: Candidate, right: Candidate, documents: Mapping[str, Document]) -> bool:
    if left.doc_id != right.doc_id or left.passage != right.passage:
        return False
    return not documents[left.doc_id].text[left.end : right.start].strip()


def _joined(left: Candidate, right: Candidate, documents: Mapping[str, Document]) -> Candidate:
    best = max(left, right, key=lambda c: c.score)
    text = documents[left.doc_id].text[left.start : right.end]
    n_tokens = (left.n_tokens or 0) + (right.n_tokens or 0)
    return replace(best, start=left.start, end=right.end, text=text, n_tokens=n_tokens)
