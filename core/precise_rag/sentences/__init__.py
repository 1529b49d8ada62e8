"""Sentence splitting: text to spans that cover it."""

from precise_rag.sentences.block_spans import paragraph_ids
from precise_rag.sentences.splitters import load_sentence_splitter, split_sentences

__all__ = ["load_sentence_splitter", "paragraph_ids", "split_sentences"]
