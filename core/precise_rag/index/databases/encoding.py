"""How documents become rows: read, encoded and checked in batches."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from precise_rag.errors import InputError
from precise_rag.filters.values import has_half_character
from precise_rag.index.databases.document_headings import Headings, read_headings
from precise_rag.index.databases.sentences import digest, stored
from precise_rag.index.databases.values import StoredDocument
from precise_rag.index.folder import check_metadata
from precise_rag.index.hybrid import HybridSettings
from precise_rag.index.queries import query_direction
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables
from precise_rag.sentences.words import has_words
from precise_rag.types import Document, FloatArray


def rows_of_documents(
    documents: Sequence[Document],
    encoder: Encoder,
    settings: HybridSettings,
    vectors: Mapping[str, FloatArray],
    show_progress: bool,
) -> list[StoredDocument]:
    """Return the rows of documents, in order.

    vectors: by document id, (d,) vectors that stand for all sentences of a document, which is not encoded.
    """
    with_text = [document for document in documents if has_words(document.text)]
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
    about, metadata = f"document {document.id!r}", dict(document.metadata)
    for name, text in (("its id", document.id), ("its text", document.text)):
        _check_text(f"{about}: {name}", text)
    try:
        check_metadata(metadata)
        for field, value in metadata.items():
            _check_text(f"{about}: its metadata {field!r}", json.dumps([field, value], ensure_ascii=False))
    except InputError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{about}: metadata cannot be saved as JSON: {error}") from error


def _check_text(what: str, text: str) -> None:
    if has_half_character(text):
        raise InputError(f"{what} cannot be stored: no database holds half of a character (a lone surrogate)")
