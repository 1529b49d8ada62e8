"""How documents become rows: read, encoded and checked in batches."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.databases.engine import StoredDocument
from precise_rag.index.databases.headings import Headings, read_headings
from precise_rag.index.databases.sentences import digest, stored
from precise_rag.index.hybrid import HybridSettings
from precise_rag.index.queries import query_direction
from precise_rag.index.storage.files import check_metadata
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables
from precise_rag.types import Document, FloatArray


def read_documents(
    documents: Sequence[Document],
    encoder: Encoder,
    settings: HybridSettings,
    vectors: Mapping[str, FloatArray],
    show_progress: bool,
) -> list[StoredDocument]:
    """Return the rows of documents, in order.

    vectors: by document id, (d,) vectors that stand for all sentences of a document, which is not encoded.
    """
    with_text = [document for document in documents if document.text.strip()]
    given = [document for document in with_text if document.id in vectors]
    unread = [document for document in with_text if document.id not in vectors]
    tables = list(build_tables(unread, encoder, show_progress=show_progress))
    above: Sequence[Headings | None] = [None] * len(unread)
    if settings.headings:
        above = read_headings(unread, tables, encoder, settings.stop_words)
    made = {
        document.id: stored(document, table, settings, headings)
        for document, table, headings in zip(unread, tables, above, strict=True)
    }
    for document, table in zip(given, build_tables(given, encoder, vectors=False), strict=True):
        vector = query_direction(vectors[document.id], encoder.dimension)
        made[document.id] = stored(
            document, replace(table, vectors=np.tile(vector, (len(table), 1))), settings
        )
    for document in documents:
        if document.id not in made:
            made[document.id] = StoredDocument(document.id, digest(document, settings), document.metadata, ())
    return [made[document.id] for document in documents]


def check_document(document: Document) -> None:
    """Raise InputError unless a database can hold a document."""
    try:
        check_metadata(dict(document.metadata))
        json.dumps(dict(document.metadata), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"document {document.id!r}: metadata cannot be saved as JSON: {error}") from error
    try:
        document.id.encode()
        document.text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"document {document.id!r}: no database holds half a character: {error}") from error
