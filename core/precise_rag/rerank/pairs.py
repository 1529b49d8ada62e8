"""What the cascade's network reads, and its tensors."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precise_rag.checkpoints.expected import check_tensors
from precise_rag.checkpoints.quantized import check_scales
from precise_rag.checkpoints.saved import Tensors
from precise_rag.encoders.bert_files import WORDS, BertSettings, bert_settings, bert_shapes
from precise_rag.encoders.local import E5, packaged_encoder
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.errors import ModelError
from precise_rag.tokens import readable_texts
from precise_rag.types import IntArray

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


class PairTokens(NamedTuple):
    """The tokens of n pairs of a query and a piece, one after the other. kinds: (t,) the type of each."""

    tokens: TokenIds
    kinds: IntArray


def tokens_of_pairs(tokenizer: Any, query: str, pieces: Sequence[Piece]) -> PairTokens:
    """Tokenize a query with each of some pieces. tokenizer: a `tokenizers.Tokenizer`."""
    texts = list(readable_texts([query, *chain.from_iterable(pieces)]))
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
        kinds += [QUERY] * len(asked) + [kind for kind, part in of_parts for _ in part]
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64)
    return PairTokens(TokenIds(ids, offsets), np.array(kinds, dtype=np.int64))


def network_settings() -> BertSettings:
    """Return the sizes of the network, which are those of the packaged encoder. Raises ModelError."""
    settings = bert_settings(packaged_encoder(E5), E5)
    assert settings is not None  # its checksum is right
    return settings


def trained_shapes() -> dict[str, tuple[int, ...]]:
    """Return the shapes of the trained tensors by name: all but the words, which are the encoder's."""
    settings = network_settings()
    shapes = {name: shape for name, shape in bert_shapes(settings).items() if name != WORDS}
    return shapes | {
        "embeddings.token_type_embeddings.weight": (AROUND + 1, settings.width),
        "pooler.dense.weight": (settings.width, settings.width),
        "pooler.dense.bias": (settings.width,),
        "classifier.weight": (1, settings.width),
        "classifier.bias": (1,),
    }


def check_trained(folder: str | Path, tensors: Tensors) -> None:
    """Check the trained tensors of the network. folder: of the model.

    Raises ModelError if one is missing, unknown or of another shape.
    """
    shapes = trained_shapes()
    check_tensors(folder, tensors, shapes)
    if unknown := sorted(tensors.keys() - shapes.keys() - check_scales(tensors)):
        raise ModelError(f"{folder}: unknown tensors {unknown[:3]}; install or train the model again")
