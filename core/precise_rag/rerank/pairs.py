"""The cascade's cross-encoder: what it reads, and how it runs on the CPU."""

import hashlib
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import safe_open

from precise_rag.checkpoints import Tensors
from precise_rag.encoders.local import E5, packaged_encoder
from precise_rag.encoders.onnx_file import OnnxFile, logits_of
from precise_rag.encoders.reading import reading_of
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.numerals import ascii_digits
from precise_rag.sentences.trimming import without_markup
from precise_rag.tokens import readable_texts
from precise_rag.types import FloatArray

NETWORK = "model.onnx"
WORDS = "embeddings.word_embeddings.weight"
"""The network's largest tensor, which is the encoder's."""
QUERY_TOKENS, TITLE_TOKENS, TEXT_TOKENS = 48, 40, 240
"""Tokens of a query, of the titles above a candidate and of a candidate that are read; later ones are cut."""
BEFORE_TOKENS, AFTER_TOKENS = 24, 16
"""Tokens of the document around a candidate that are read, those next to it."""
QUERY, TEXT, AROUND = range(3)
"""Types of tokens: of the query, of a candidate and what stands above it, and of the text around it."""


class Piece(NamedTuple):
    """A text as the cascade's network reads it.

    above: the titles that are put before it, if any. before, after: the document's text around it.
    """

    text: str
    above: str = ""
    before: str = ""
    after: str = ""


Logits = Callable[[str, Sequence[Piece]], FloatArray]
"""Reads the beginnings of a query and of each of n pieces, and returns the (n,) logits."""


def tokens_of_pairs(tokenizer: Any, query: str, pieces: Sequence[Piece]) -> TokenIds:
    """Tokenize a query with each of some pieces. tokenizer: a `tokenizers.Tokenizer`."""
    texts = [*map(ascii_digits, readable_texts([query, *map(without_markup, chain.from_iterable(pieces))]))]
    begin, end = tokenizer.encode("").ids
    asked, *parts = (one.ids for one in tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    asked = [begin, *asked[:QUERY_TOKENS], end, end]
    rows, kinds = [], []
    for first in range(0, len(parts), len(Piece._fields)):
        text, above, before, after = parts[first : first + len(Piece._fields)]
        if len(text) > TEXT_TOKENS:
            text, after = text[:TEXT_TOKENS], []
        around = above[:TITLE_TOKENS], before[-BEFORE_TOKENS:], text, after[:AFTER_TOKENS], [end]
        rows.append([*asked, *chain.from_iterable(around)])
        of_parts = zip((TEXT, AROUND, TEXT, AROUND, TEXT), around, strict=True)
        kinds.append([QUERY] * len(asked) + [kind for kind, part in of_parts for _ in part])
    return TokenIds.joined(rows, kinds)


def word_table() -> Tensors:
    """Return the word embeddings of the packaged encoder in int8, with their scales."""
    with safe_open(packaged_encoder(E5) / "model.safetensors", "numpy") as file:
        return {name: file.get_tensor(name) for name in (WORDS, f"{WORDS}_scale")}


def network_checksum(network: bytes, weights_sha256: str) -> str:
    """Return the checksum of an ONNX file and of the weights that it points to."""
    return hashlib.sha256(network + weights_sha256.encode()).hexdigest()


def onnx_logits(folder: Path, tokenizer: Any) -> Logits:
    """Return the logits of the network in a folder, which runs on the CPU."""
    reading = reading_of(packaged_encoder(E5), E5)._replace(folder=folder)
    network = OnnxFile(reading, word_table(), for_callers=True)
    return lambda query, pieces: logits_of(network, tokens_of_pairs(tokenizer, query, pieces))
