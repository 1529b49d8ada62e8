"""A collection in Milvus."""

import os
from functools import partial
from typing import Any

from precise_rag._extras import require
from precise_rag.errors import DatabaseError
from precise_rag.index.databases.clusters import ClusterEngine
from precise_rag.index.databases.clusters.client import ServerClient
from precise_rag.index.databases.clusters.location import Location
from precise_rag.index.databases.milvus.store import MilvusStore
from precise_rag.redaction import remember, said_by

_SELDOM = {"grpc.keepalive_time_ms": 600_000}
"""Milvus Lite hangs up on a client that asks more often whether it is there."""


class MilvusEngine(ClusterEngine):
    """A collection in Milvus; see `ClusterEngine`.

    location: "milvus:https://user@host:19530", with "?collection=name" for another collection than "precise"
        and "db=name" for another database; the token is in the environment variable MILVUS_TOKEN.
        "milvus:file.db" is Milvus Lite, which is made for tests: one process, and no more than some thousand
        sentences.
    client: a MilvusClient to use in place of one for the address. Default: none.
    """

    def __init__(self, location: str, *, client: Any = None) -> None:
        given = Location.parse(location)
        is_lite = client is None and not given.address.startswith(("http://", "https://"))
        opened = partial(_open, given, is_lite=is_lite) if client is None else partial(_given, client)
        server = ServerClient(given.public, opened)
        super().__init__(MilvusStore(server, given.public, given.collection, is_lite=is_lite))


def _open(given: Location, *, is_lite: bool) -> Any:
    pymilvus = require("pymilvus", extra="milvus")
    user, password = given.login or ("", "")
    token = os.environ.get("MILVUS_TOKEN", "") or (f"{user}:{password}" if password else user)
    remember(token)
    options = {"grpc_options": _SELDOM} if is_lite else {}
    try:
        return pymilvus.MilvusClient(
            given.address, token=token, db_name=given.options.get("db", ""), **options
        )
    except pymilvus.MilvusException as error:
        if not is_lite:
            raise
        raise DatabaseError(
            f"{given.public}: {said_by(error)}; a file of Milvus Lite is open in one process at a time, "
            "and in this one until it ends"
        ) from error


def _given(client: Any) -> Any:
    return client
