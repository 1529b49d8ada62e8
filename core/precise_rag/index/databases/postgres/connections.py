"""Connections to a PostgreSQL server, kept for the next use."""

import os
import re
import selectors
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from precise_rag._extras import require
from precise_rag.errors import DatabaseError, InputError
from precise_rag.redaction import remember_fields, said_by, without_password, without_secrets

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")


class Connections:
    """Connections to the database of an address, for any number of threads and processes.

    location: a connection URI, with "collection=name" among its parameters for another collection than
        "precise". After it is made, `location` is the address without passwords, and `collection` the name.
    A pickle has no password.
    """

    def __init__(self, location: str) -> None:
        public, _ = without_password(location, user_is_key=False)
        try:
            parts, host = urlsplit(location), urlsplit(str(public)).netloc
        except ValueError as error:
            raise InputError(f"{location!r} is no address of a database: {error}") from None
        options = dict(parse_qsl(parts.query))
        remember_fields(options)
        public_options = without_secrets(options)
        self.location = _address(parts.scheme, host, parts.path, public_options)
        self.collection = options.pop("collection", "precise")
        public_options.pop("collection", None)
        if not _NAME.fullmatch(self.collection):
            raise InputError(f"collection must be lower-case letters, digits and _, got {self.collection!r}")
        user = parts.netloc.rpartition("@")[0].partition(":")[0]
        self._dsn = _address(parts.scheme, parts.netloc, parts.path, options)
        self._public_dsn = _address(
            parts.scheme, f"{user}@{host}" if user else host, parts.path, public_options
        )
        self._start()

    def _start(self) -> None:
        self._idle: list[Any] = []
        self._process = os.getpid()
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._idle)

    def __getstate__(self) -> dict[str, Any]:
        shared = {"_dsn": self._public_dsn, "_public_dsn": self._public_dsn}
        return {"collection": self.collection, "location": self.location, **shared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def close(self) -> None:
        """End the connections that are not in use."""
        with self._lock:
            _close(self._idle)

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
        connection = None
        try:
            connection = self._taken() or psycopg.connect(self._dsn)
            yield connection
            connection.commit()
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise DatabaseError(f"{self.location}: {said_by(error)}") from error
        finally:
            if connection is not None:
                self._put_back(psycopg, connection)

    def _taken(self) -> Any:
        with self._lock:
            if self._process != os.getpid():  # connections cannot be shared with the parent
                self._idle.clear()
                self._process = os.getpid()
            while self._idle:
                connection = self._idle.pop()
                if not _is_dropped(connection):
                    return connection
                connection.close()
            return None

    def _put_back(self, psycopg: Any, connection: Any) -> None:
        try:
            if not connection.closed:
                connection.rollback()
                with self._lock:
                    self._idle.append(connection)
        except psycopg.Error:
            connection.close()


def _address(scheme: str, netloc: str, path: str, options: Mapping[str, str]) -> str:
    query = urlencode(options, quote_via=quote)  # libpq reads no "+" as a space
    return f"{scheme}://{netloc}{path}{'?' if query else ''}{query}"


def _is_dropped(connection: Any) -> bool:
    """Whether the server has said something to a connection without being asked: that it ends."""
    if connection.closed:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


def _close(idle: list[Any]) -> None:
    while idle:
        idle.pop().close()
