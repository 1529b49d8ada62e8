"""Opening a saved index of any kind."""

from pathlib import Path
from typing import Any

from precise_rag.encoders import load_encoder
from precise_rag.errors import IndexFormatError, InputError, ModelError
from precise_rag.index.base import DocumentIndex
from precise_rag.index.bm25 import BM25Index
from precise_rag.index.dense import DenseIndex
from precise_rag.index.faiss import FaissIndex
from precise_rag.index.hybrid import HybridIndex
from precise_rag.index.sentence_context import SentenceContextIndex
from precise_rag.index.storage import read_manifest
from precise_rag.index.word_sentence import WordSentenceIndex
from precise_rag.protocols import Encoder

KINDS: dict[str, type[DocumentIndex]] = {
    cls.kind: cls
    for cls in (DenseIndex, FaissIndex, BM25Index, SentenceContextIndex, WordSentenceIndex, HybridIndex)
}


def load_index(
    path: str | Path, encoder: Encoder | None = None, *, device: str | None = None, **settings: Any
) -> DocumentIndex:
    """The index saved at `path`, of whatever kind; its encoder is loaded by name if none is given.

    device: where that encoder runs. settings: see `DocumentIndex.load`.
    Raises IndexFormatError if there is no index that this version can read, or the encoder is another
    one, and ModelError if the encoder cannot be loaded by name.
    """
    manifest = read_manifest(path)
    if manifest["kind"] not in KINDS:
        raise IndexFormatError(f"{path} holds a {manifest['kind']!r} index, which this version does not know")
    source = manifest["encoder"]["source"]
    if encoder is None and source is not None:
        try:
            encoder = load_encoder(source, device=device)
        except (ModelError, InputError) as error:
            raise ModelError(f"{path} was built with encoder {source!r}; pass `encoder=`: {error}") from error
    return KINDS[manifest["kind"]].load(path, encoder, **settings)
