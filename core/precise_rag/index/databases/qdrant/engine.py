"""A collection in Qdrant."""

import os
from functools import partial
from typing import Any

from precise_rag._extras import require
from precise_rag.index.databases.clusters import ClusterEngine
from precise_rag.index.databases.clusters.client import ServerClient
from precise_rag.index.databases.clusters.location import Location
from precise_rag.index.databases.qdrant.store import QdrantStore
from precise_rag.redaction import remember


class QdrantEngine(ClusterEngine):
    """A collection in Qdrant; see `ClusterEngine`.

    location: "qdrant:https://host:6333", with "?collection=name" for another collection than "precise";
        the key is in the environment variable QDRANT_API_KEY. "qdrant:folder" and "qdrant::memory:" are the
        client's own engine, which is made for tests: one process, and no more than some thousand sentences.
    client: a QdrantClient to use in place of one for the address. Default: none.
    """

    def __init__(self, location: str, *, client: Any = None) -> None:
        given = Location.parse(location)
        is_local = client is None and not given.address.startswith(("http://", "https://"))
        opened = partial(_open, given.address) if client is None else partial(_given, client)
        server = ServerClient(given.public, opened, one_at_a_time=is_local)
        super().__init__(QdrantStore(server, given.public, given.collection, is_local=is_local))


def _open(address: str) -> Any:
    client = require("qdrant_client", extra="qdrant").QdrantClient
    if address == ":memory:":
        return client(":memory:")
    if not address.startswith(("http://", "https://")):
        return client(path=address, force_disable_check_same_thread=True)
    key = os.environ.get("QDRANT_API_KEY")
    remember(key)
    return client(url=address, api_key=key, timeout=60)


def _given(client: Any) -> Any:
    return client
