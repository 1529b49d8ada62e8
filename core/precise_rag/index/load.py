"""Opening a saved index of any kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from precise_rag.checks import as_path
from precise_rag.encoders.load import load_encoder
from precise_rag.encoders.local import PACKAGED
from precise_rag.errors import IndexFormatError, ModelError, PreciseRagError
from precise_rag.index.databases import DatabaseIndex, is_database
from precise_rag.index.databases.engine import PostgresEngine
from precise_rag.index.databases.index import read_settings
from precise_rag.index.dense import DenseIndex
from precise_rag.index.folder import read_manifest
from precise_rag.index.hybrid import HybridIndex
from precise_rag.index.index import DocumentIndex
from precise_rag.index.sentence_context import SentenceContextIndex
from precise_rag.index.word_sentence import WordSentenceIndex
from precise_rag.protocols import Encoder

KINDS: dict[str, type[DocumentIndex]] = {
    cls.kind: cls for cls in (DenseIndex, SentenceContextIndex, WordSentenceIndex, HybridIndex)
}


def load_index(
    path: str | Path, encoder: Any = None, *, device: str | None = None, **settings: Any
) -> DocumentIndex | DatabaseIndex:
    """Load a saved index of any kind, or open one in a database.

    path: folder of the index; or "postgresql://…" for one in a database.
    encoder: the encoder or embedding object that the index was built with, or anything else that
    `load_encoder` takes; optional if it is one of the two in this package.
    device: where the installed encoder runs; see `load_encoder`.
    settings: see `DocumentIndex.load`.
    Raises IndexFormatError if the index cannot be read by this version or is damaged, and ModelError
    if it needs an encoder that must be passed. A saved index never chooses a model or service to load.
    """
    if is_database(path):
        engine = PostgresEngine(str(path))
        made = read_settings(engine)
        if made is None:
            raise IndexFormatError(f"{engine.location} holds no index; build one there")
        loaded = _encoder(encoder, engine.location, made["encoder"], device)
        return DatabaseIndex(str(path), loaded, **settings)
    path = as_path("path", path)
    while True:
        manifest = read_manifest(path)
        try:
            if manifest["kind"] not in KINDS:
                raise IndexFormatError(
                    f"{path} holds a {manifest['kind']!r} index, which this version does not know; "
                    "load it with the version that saved it, or delete it and build it again"
                )
            loaded = _encoder(encoder, str(path), manifest["encoder"], device)
            return KINDS[manifest["kind"]].load(path, loaded, **settings)
        except (PreciseRagError, OSError):
            if read_manifest(path)["sha256"] == manifest["sha256"]:
                raise
            # else another process has saved an index, perhaps of another kind, since the manifest was read


def _encoder(given: Any, place: str, saved: Mapping[str, Any], device: str | None) -> Encoder:
    """The given encoder of an index, or else the packaged one."""
    name, source = saved["name"], saved["source"]
    if given is None and name not in PACKAGED:
        raise ModelError(
            f"{place} was built with encoder {name!r}, which an index does not load by itself; if you "
            f"trust it, pass {source or name!r} or the embedding object: load_index(path, encoder), "
            "or --encoder on the command line"
        )
    return load_encoder(name if given is None else given, device)
