"""Text to sentences: spans that tile the text."""

from functools import cache

from precise_rag.protocols import SentenceSplitter
from precise_rag.sentences.blocks import paragraph_ids
from precise_rag.sentences.splitters import load_sentence_splitter
from precise_rag.types import Span

__all__ = ["load_sentence_splitter", "paragraph_ids", "split_sentences"]


@cache
def _default_splitter() -> SentenceSplitter:
    return load_sentence_splitter()


def split_sentences(text: str) -> list[Span]:
    """The sentences of `text` by the default splitter, as spans that tile it.

    White space after a sentence belongs to it. Any string works; the empty one has no sentences.
    """
    return _default_splitter().split(text)
