"""Where a server is ("qdrant:https://host:6333?collection=name"), and its client, opened at first use."""

import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from precise_rag._processes import ProcessLock
from precise_rag.errors import DatabaseError, InputError, PreciseRagError
from precise_rag.redaction import message_of, remember_fields, without_password, without_secrets

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")


class Location(NamedTuple):
    """A location, read.

    public: the location without passwords.
    address: the address of the server without user and options, or a path.
    collection: name of the collection; "precise" by default.
    """

    public: str
    address: str
    collection: str

    @classmethod
    def parse(cls, location: str) -> "Location":
        """Read "<engine>:<address>?collection=…". Raises InputError for anything else."""
        engine, _, rest = location.partition(":")
        bare, _ = without_password(rest)
        try:
            parts = urlsplit(str(bare))
        except ValueError as error:
            raise InputError(f"{engine}: not the address of a database: {error}") from None
        options = dict(parse_qsl(parts.query))
        remember_fields(options)
        address = parts._replace(query="").geturl()
        if not address:
            raise InputError(f"{engine}: needs an address, for example {engine}:http://localhost")
        shown = urlencode(without_secrets(options))
        collection = options.pop("collection", "precise")
        if not _NAME.fullmatch(collection):
            raise InputError(f"collection must be letters, digits and _, got {collection!r}")
        public = f"{engine}:{address}{'?' if shown else ''}{shown}"
        if options:
            raise InputError(
                f"{public}: the option {min(options)!r} is not known; the only one is collection"
            )
        return cls(public, address, collection)


class ServerClient:
    """Calls the methods of a client, and raises DatabaseError in place of its errors.

    The client is opened at the first call, and again in a forked process or after unpickling.

    location: of the server, for messages.
    opened: makes the client.
    one_at_a_time: whether only one thread may call it at a time.
    """

    def __init__(self, location: str, opened: Callable[[], Any], *, one_at_a_time: bool = False) -> None:
        self._location, self._opened = location, opened
        self._turn: Any = ProcessLock() if one_at_a_time else nullcontext()
        self._lock = ProcessLock()
        self._client: Any = None
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: Any, **options: Any) -> Any:
            try:
                with self._turn:
                    return getattr(self._present(), name)(*args, **options)
            except PreciseRagError:
                raise
            except Exception as error:  # the clients let those of their transports through
                raise DatabaseError(f"{self._location}: {message_of(error)}") from error

        return call

    def close(self) -> None:
        """End the connection; the next call opens it again."""
        with self._lock:
            client, self._client = self._client, None
            if client is not None and self._process == os.getpid():
                client.close()

    def _present(self) -> Any:
        with self._lock:
            if self._client is None or self._process != os.getpid():
                self._client, self._process = self._opened(), os.getpid()
            return self._client
