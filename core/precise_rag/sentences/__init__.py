"""Sentence splitting: text to spans that cover it."""

from precise_rag.sentences.blocks import paragraph_ids as paragraph_ids
from precise_rag.sentences.splitters import load_sentence_splitter as load_sentence_splitter
from precise_rag.sentences.splitters import split_sentences as split_sentences
