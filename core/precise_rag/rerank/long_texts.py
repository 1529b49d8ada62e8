"""Long texts for rerankers that were trained on short ones: a text is as good as its best sentence."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from precise_rag.protocols import Reranker
from precise_rag.rerank.text_around import text_around
from precise_rag.sentences import load_sentence_splitter
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, FloatArray


def score_texts(query: str, candidates: Sequence[Candidate], reranker: Reranker) -> FloatArray:
    """Return (n,) scores of candidates of any length.

    If the reranker has `longest_text`, each text of more tokens than that, estimated, is scored by its
    sentences, and has the score of the best one. Short texts are scored whole, beside those sentences.
    """
    longest = getattr(reranker, "longest_text", None)
    is_long = [longest is not None and _is_longer(c.text, longest) for c in candidates]
    if not any(is_long):
        return reranker.score(query, candidates)
    parts: list[Candidate] = []
    firsts = []
    for candidate, split in zip(candidates, is_long, strict=True):
        firsts.append(len(parts))
        parts += _sentences(candidate) if split else [candidate]
    best: FloatArray = np.maximum.reduceat(np.asarray(reranker.score(query, parts)), firsts)
    return best


def _is_longer(text: str, n_tokens: int) -> bool:
    return len(text) > n_tokens and estimate_tokens(text) > n_tokens


def _sentences(text: Candidate) -> list[Candidate]:
    """The sentences of a text, without the retrieval scores, which say little about each; at least one."""
    sentences = []
    for span in load_sentence_splitter().split(text.text):
        sentence = text.text[span.start : span.end]
        if sentence.strip():
            before, after = text_around(text.text, *span)
            start, end = text.start + span.start, text.start + span.end
            sentences.append(
                replace(text, start=start, end=end, text=sentence, scores={}, before=before, after=after)
            )
    return sentences or [text]
