"""Addresses of PostgreSQL servers, and transactions there."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from precise_rag._extras import require
from precise_rag._processes import PerProcess
from precise_rag.errors import DatabaseError, InputError
from precise_rag.index.databases.postgres.pool import Pool, shared_pool
from precise_rag.redaction import quoted, remember_fields, without_password, without_secrets

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_MOST = "10"
"""Connections of a process to one address, if the address does not say."""


class Connections:
    """Connections to the database of an address, for any number of threads and processes.

    location: a connection URI, with "collection=name" among its parameters for another collection than
        "precise", and "max_connections=n" for another number than 10. After it is made, `location` is the
        address without passwords, and `collection` the name.
    The indexes of a process at one address share their connections; see `Pool`. A pickle has no password.
    """

    def __init__(self, location: str) -> None:
        public, _ = without_password(location, user_is_key=False)
        try:
            parts, host = urlsplit(location), urlsplit(str(public)).netloc
        except ValueError as error:
            raise InputError(
                f"{location!r} is not a database URL ({error}); use postgresql://user@host/name"
            ) from None
        options = dict(parse_qsl(parts.query))
        remember_fields(options)
        public_options = without_secrets(options)
        self.location = _address(parts.scheme, host, parts.path, public_options)
        self.collection = options.pop("collection", "precise")
        self._most = _number(options.pop("max_connections", _MOST))
        for name in ("collection", "max_connections"):
            public_options.pop(name, None)
        if not _NAME.fullmatch(self.collection):
            raise InputError(f"collection must be lower-case letters, digits and _, got {self.collection!r}")
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        login = f"{user}:{password}" if password else user
        self._dsn = _address(parts.scheme, f"{login}@{host}" if login else host, parts.path, options)
        self._public_dsn = _address(
            parts.scheme, f"{user}@{host}" if user else host, parts.path, public_options
        )
        self._pool: PerProcess[Pool] = PerProcess()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dsn": self._public_dsn}

    def close(self) -> None:
        """End the connections that are not in use, also for other indexes of this address."""
        self._shared().close()

    def _shared(self) -> Pool:
        return self._pool.get(lambda: shared_pool(self._dsn, self.location, self._most))

    @contextmanager
    def transaction(self, reads: bool = False, vectors: bool = False) -> Iterator[Any]:
        """Run statements in one transaction; yields the connection's `execute`."""
        with self.connection() as connection:
            if reads:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if vectors:
                require("pgvector.psycopg", extra="postgres").register_vector(connection)
            yield connection.execute

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """Lend a connection; what it did is committed, or undone if anything is raised."""
        psycopg = require("psycopg", extra="postgres")
        connection, pool = None, self._shared()
        try:
            connection = pool.take()
            yield connection
            connection.commit()
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise DatabaseError(f"{self.location}: {quoted(error)}") from error
        finally:
            if connection is not None:
                pool.put_back(connection)


def _number(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,4}", text):
        raise InputError(f"max_connections must be a whole number from 1, got {text!r}")
    return int(text)


def _address(scheme: str, netloc: str, path: str, options: Mapping[str, str]) -> str:
    query = urlencode(options, quote_via=quote)  # libpq reads no "+" as a space
    return f"{scheme}://{netloc}{path}{'?' if query else ''}{query}"
