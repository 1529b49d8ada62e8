"""Addresses of PostgreSQL servers, and connections to them."""

import atexit
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from precise_rag._extras import require
from precise_rag._processes import PerProcess, ProcessLock
from precise_rag.checks import check_text
from precise_rag.errors import DatabaseError, InputError
from precise_rag.redaction import quoted, remember_fields, without_password, without_secrets

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_MOST = "10"
"""Connections of a process to one address, if the address does not say."""
_WAIT = 30.0
"""Seconds that a thread waits for a connection."""
_IDLE = 60.0
"""Seconds after which one of the connections is ended, if so many were not used meanwhile."""
_connecting = ProcessLock()
_pools: PerProcess[dict[tuple[str, str], Any]] = PerProcess()
"""The pools of this process, by address and number of connections."""


class Connections:
    """Connections to the database of an address, for any number of threads and processes.

    location: a connection URI, with "collection=name" among its parameters for another collection than
        "precise", and "max_connections=n" for another number of connections than 10; the next thread waits
        for one. After it is made, `location` is the address without passwords, and `collection` the name.
    The indexes of a process at one address share their connections. A pickle has no password: that of an
    unpickled object is in PGPASSWORD or a password file.
    """

    def __init__(self, location: str) -> None:
        check_text("location", location)
        if not location.startswith(("postgresql://", "postgres://")):
            raise InputError(
                f"{location!r} is not a database: give postgresql://…; other stores are searched through "
                "LlamaIndex or LangChain, by PreciseRetriever.from_store(store)"
            )
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
        self._most = options.pop("max_connections", _MOST)
        if not re.fullmatch("[1-9][0-9]{0,4}", self._most):
            raise InputError(f"max_connections must be a whole number from 1, got {self._most!r}")
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

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dsn": self._public_dsn}

    def close(self) -> None:
        """End the connections, also for other indexes of this address; the next use opens new ones."""
        pool = _pools.get(dict).pop((self._dsn, self._most), None)
        if pool is not None:
            pool.close()

    @contextmanager
    def snapshot(self) -> Iterator[Any]:
        """Lend a connection that reads one state of the database, and changes nothing."""
        with self.connection() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """Lend a connection in a transaction, which is undone if anything is raised."""
        psycopg = require("psycopg", extra="postgres")
        try:
            with self._pool().connection() as connection:
                yield connection
        except require("psycopg_pool", extra="postgres").PoolTimeout as error:
            raise DatabaseError(
                f"{self.location}: no connection was free for {_WAIT:g} seconds: all {self._most} were in "
                "use, or the server lets in no more; use fewer threads, or let the address end with "
                "max_connections=… for more"
            ) from error
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise DatabaseError(f"{self.location}: {quoted(error)}") from error

    def _pool(self) -> Any:
        pools = _pools.get(dict)
        key = self._dsn, self._most
        with _connecting:
            if key not in pools:
                pool = require("psycopg_pool", extra="postgres").ConnectionPool
                # a pool would only say that it got no connection in time, and not why
                require("psycopg", extra="postgres").connect(self._dsn).close()
                pools[key] = pool(
                    self._dsn,
                    min_size=0,
                    max_size=int(self._most),
                    open=True,
                    check=pool.check_connection,
                    timeout=_WAIT,
                    max_idle=_IDLE,
                    reconnect_timeout=_WAIT,
                )
            return pools[key]


def _address(scheme: str, netloc: str, path: str, options: Mapping[str, str]) -> str:
    query = urlencode(options, quote_via=quote)  # libpq reads no "+" as a space
    return f"{scheme}://{netloc}{path}{'?' if query else ''}{query}"


@atexit.register
def _close_all() -> None:
    """End the connections of this process; their threads cannot be ended once the interpreter stops."""
    for pool in _pools.get(dict).values():
        pool.close()
