"""What comes back for a scored sentence: itself, its passage, or it joined with its neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.base import View
from precise_rag.types import Candidate, Document, FloatArray, IntArray


def trimmed(text: str, spans: IntArray) -> IntArray:
    """(n, 2) the spans without the white space around their text."""
    tight = np.empty_like(spans)
    for row, (start, end) in enumerate(spans):
        piece = text[start:end]
        tight[row] = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
    return tight


def best_of_groups(scores: FloatArray, groups: Groups, top_k: int) -> IntArray:
    """The best row of each of the `top_k` groups with the best rows, best first."""
    starts = groups.starts[top_rows(groups.maxima(scores), top_k)]
    sizes = groups.sizes[groups.of_row[starts]]
    return np.array(
        [a + scores[a : a + n].argmax() for a, n in zip(starts, sizes, strict=True)], dtype=np.int64
    )


def widened(candidates: Sequence[Candidate], view: View, groups: Groups, rows: IntArray) -> list[Candidate]:
    """Each candidate with the whole of its passage as its text; rows: (n,) the candidates' sentences."""
    tokens = groups.sums(view.collection.columns["n_tokens"])[groups.of_row[rows]]
    wide = []
    for candidate, n_tokens in zip(candidates, tokens, strict=True):
        assert candidate.passage is not None
        start, end = candidate.passage
        text = view.collection.documents[candidate.doc_id].text[start:end]
        wide.append(replace(candidate, start=start, end=end, text=text, n_tokens=int(n_tokens)))
    return wide


def merged(candidates: Sequence[Candidate], documents: Mapping[str, Document]) -> list[Candidate]:
    """Neighbouring candidates of one passage joined in document order, each with the best score of its parts.

    The pieces stand in the order of their scores.
    """
    pieces: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.doc_id, c.start)):
        if pieces and _adjacent(pieces[-1], candidate, documents):
            pieces[-1] = _joined(pieces[-1], candidate, documents)
        else:
            pieces.append(candidate)
    return sorted(pieces, key=lambda c: -c.score)


def within(candidates: Sequence[Candidate], max_tokens: int) -> list[Candidate]:
    """The candidates in order, without those that would take the sum of tokens past `max_tokens`."""
    if max_tokens < 1:
        raise InputError(f"max_tokens is {max_tokens}; it must be at least 1")
    kept = []
    for candidate in candidates:
        assert candidate.n_tokens is not None
        if candidate.n_tokens <= max_tokens:
            kept.append(candidate)
            max_tokens -= candidate.n_tokens
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
