"""Documents of a Ray dataset."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from precise_rag.types import Document


def as_items(documents: Sequence[Document]) -> list[dict[str, str]]:
    """Return documents as rows of a dataset."""
    return [{"id": d.id, "text": d.text, "metadata": json.dumps(dict(d.metadata))} for d in documents]


def as_documents(batch: Mapping[str, Any]) -> list[Document]:
    """Return the documents of a batch: the columns "id", "text" and optionally "metadata".

    Metadata are JSON, or a record as in JSON Lines; there, a field that is None is one that others have.
    """
    metadata = batch.get("metadata", ["{}"] * len(batch["id"]))
    return [
        Document(str(i), str(text), _record(about))
        for i, text, about in zip(batch["id"], batch["text"], metadata, strict=True)
    ]


def _record(about: Any) -> dict[str, Any]:
    if isinstance(about, Mapping):
        return {name: value for name, value in about.items() if value is not None}
    return dict(json.loads(about)) if about is not None else {}
