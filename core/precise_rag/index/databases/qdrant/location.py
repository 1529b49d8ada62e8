"""Locations of servers: "qdrant:https://host:6333?collection=name"."""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from precise_rag.errors import InputError
from precise_rag.redaction import remember_fields, without_password, without_secrets

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
