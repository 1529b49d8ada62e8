"""The connections of one process to one address: a bounded number, lent to one user at a time."""

import os
import selectors
import threading
import time
import weakref
from typing import Any, NamedTuple

from precise_rag._extras import require
from precise_rag._processes import PerProcess
from precise_rag.errors import DatabaseError

WAIT = 30.0
"""Seconds that a user waits for a connection."""
_LONGEST_IDLE = 60.0
"""Seconds without use after which a connection is ended when another one is returned."""


class _Idle(NamedTuple):
    connection: Any
    since: float


class Pool:
    """At most `most` connections; all indexes of one address share one pool; see `shared_pool`.

    dsn: what the driver connects to. location: for messages.
    """

    def __init__(self, dsn: str, location: str, most: int) -> None:
        self._dsn, self._location, self.most = dsn, location, most
        self._changed = threading.Condition()
        self._idle: list[_Idle] = []
        self._n_lent = self._n_connecting = 0
        weakref.finalize(self, _close, self._idle, os.getpid())

    def take(self) -> Any:
        """Lend a connection. Raises DatabaseError if none is returned in time."""
        psycopg = require("psycopg", extra="postgres")
        deadline = time.monotonic() + WAIT
        while True:
            if (connection := self._idle_one(deadline)) is not None:
                return connection
            try:
                connection = psycopg.connect(self._dsn)
            except psycopg.OperationalError:
                if not self._is_worth_waiting(deadline):
                    raise
            except BaseException:
                self._end_connecting(0)
                raise
            else:
                self._end_connecting(1)
                return connection

    def put_back(self, connection: Any) -> None:
        """Return a connection; what it did not commit is undone."""
        is_usable = not connection.closed and _is_rolled_back(connection)
        with self._changed:
            self._n_lent -= 1
            now = time.monotonic()
            if is_usable:
                self._idle.append(_Idle(connection, now))
            while self._idle and now - self._idle[0].since > _LONGEST_IDLE:
                self._idle.pop(0).connection.close()
            self._changed.notify()

    def close(self) -> None:
        """End the connections that are not in use."""
        with self._changed:
            _close(self._idle, os.getpid())

    def _idle_one(self, deadline: float) -> Any:
        """An idle connection, or None if the caller is to connect."""
        with self._changed:
            while True:
                while self._idle:
                    connection = self._idle.pop().connection
                    if not _is_dropped(connection):
                        self._n_lent += 1
                        return connection
                    connection.close()
                if self._n_lent + self._n_connecting < self.most:
                    self._n_connecting += 1
                    return None
                if not self._changed.wait(deadline - time.monotonic()):
                    raise DatabaseError(
                        f"{self._location}: all {self.most} connections were in use for {WAIT:g} seconds; "
                        "use fewer threads, or let the address end with max_connections=… for more"
                    )

    def _is_worth_waiting(self, deadline: float) -> bool:
        """Whether a connection is back, or comes back in time: the server may allow no more."""
        with self._changed:
            self._n_connecting -= 1
            self._changed.notify()
            return self._changed.wait_for(
                lambda: self._idle or not self._n_lent, deadline - time.monotonic()
            ) and bool(self._idle)

    def _end_connecting(self, n_lent: int) -> None:
        with self._changed:
            self._n_connecting -= 1
            self._n_lent += n_lent
            self._changed.notify()


_pools: PerProcess[weakref.WeakValueDictionary[str, Pool]] = PerProcess()


def shared_pool(dsn: str, location: str, most: int) -> Pool:
    """The pool of an address in this process; of several bounds, the lowest holds."""
    pools = _pools.get(weakref.WeakValueDictionary)
    pool = pools.setdefault(dsn, Pool(dsn, location, most))
    pool.most = min(pool.most, most)
    return pool


def _is_dropped(connection: Any) -> bool:
    """Whether the server has said something to a connection without being asked: that it ends."""
    if connection.closed:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


def _is_rolled_back(connection: Any) -> bool:
    try:
        connection.rollback()
    except require("psycopg", extra="postgres").Error:
        connection.close()
        return False
    return True


def _close(idle: list[_Idle], process: int) -> None:
    """End connections, but not those of the parent of a forked process."""
    while idle:
        connection = idle.pop().connection
        if process == os.getpid():
            connection.close()
