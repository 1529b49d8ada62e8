"""Stretches of consecutive sentences around the sentences that were found."""

from dataclasses import replace

from precise_rag.protocols import SentenceSplitter
from precise_rag.sentences import load_sentence_splitter
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Stretch


def split_into_sentences(piece: Candidate, splitter: SentenceSplitter | None = None) -> Stretch:
    """Split a candidate of any length into its sentences, without the white space around them.

    splitter: splits the text; default: `load_sentence_splitter()`.
    The sentences have the piece's score, scale, scores, passage and metadata. Their offsets count from
    `piece.start`, also if the piece's text is not exactly that of a document. Their tokens are estimated.
    """
    sentences = []
    for start, end in (splitter or load_sentence_splitter()).split(piece.text):
        raw = piece.text[start:end]
        text = raw.strip()
        if text:
            first = piece.start + start + len(raw) - len(raw.lstrip())
            n_tokens = estimate_tokens(text)
            sentences.append(replace(piece, start=first, end=first + len(text), text=text, n_tokens=n_tokens))
    if not sentences:
        return Stretch("", ())
    first, last = sentences[0].start - piece.start, sentences[-1].end - piece.start
    return Stretch(piece.text[first:last], tuple(sentences))
