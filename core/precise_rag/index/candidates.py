"""Changes to the candidates of a sentence search: wider texts, merged neighbours, a token limit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from precise_rag.errors import InputError
from precise_rag.types import Candidate


def widen_to_passages(
    candidates: Sequence[Candidate], texts: Sequence[str], n_tokens: Sequence[int]
) -> list[Candidate]:
    """Give each candidate the text of its whole passage.

    candidates: single sentences.
    texts: of the document of each candidate.
    n_tokens: of the passage of each candidate.
    """
    wide = []
    for candidate, text, tokens in zip(candidates, texts, n_tokens, strict=True):
        assert candidate.passage is not None
        start, end = candidate.passage
        wide.append(replace(candidate, start=start, end=end, text=text[start:end], n_tokens=tokens))
    return wide


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
