"""Who may ask a server over HTTP: the names it is asked by, the pages that ask, and a token."""

import argparse
import hmac
import os
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

from precise_rag.cli.output import is_terminal, warn
from precise_rag.errors import InputError

TOKEN_VARIABLE = "PRECISE_SERVE_TOKEN"

_TOKEN = re.compile(r"[\x21-\x7e]{16,512}")
_LOCAL = ("127.0.0.1", "localhost", "[::1]")

App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]
"""An ASGI application."""


def add_http_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a server over HTTP."""
    parser.add_argument(
        "--host",
        metavar="HOST",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s, this machine only; others need a token)",
    )
    parser.add_argument(
        "--port", type=int, metavar="PORT", default=8000, help="port to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        default=[],
        help="a name or address by which clients reach the server, as in their URL (can be repeated)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        metavar="ORIGIN",
        default=[],
        help="the origin of web pages that may ask, such as https://example.com (can be repeated)",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"file with the token that clients must send (default: {TOKEN_VARIABLE}; beyond this machine, "
        "on a terminal a new one, which is printed)",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Where a server listens and whom it lets in.

    host, port: the address to listen on.
    hosts, origins: accepted values of the headers Host and Origin; ":*" at the end is any port.
    token: what clients send as "Authorization: Bearer …"; empty for none.
    """

    host: str
    port: int
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    token: str

    @classmethod
    def of(cls, args: argparse.Namespace) -> Self:
        """Return what the options say. Raises InputError for what cannot be.

        Beyond this machine there is always a token. Without one, a new one is printed if standard error is a
        terminal; in a log it would stay.
        """
        is_local = _is_loopback(args.host)
        names = [_bracketed(name) for name in args.allow_host]
        if not is_local and not names:
            if _is_any(args.host):
                raise InputError(
                    f"--host {args.host} is every address of this machine; "
                    "name those that clients use with --allow-host NAME"
                )
            names = [_bracketed(args.host)]
        token = _given_token(args.token_file)
        if not token and not (is_local and not args.allow_host):
            if not is_terminal("stderr"):  # a log is no place for it
                raise InputError(
                    f"beyond this machine clients need a token; put one in {TOKEN_VARIABLE} or --token-file, "
                    "such as that of: openssl rand -hex 32"
                )
            token = secrets.token_urlsafe(32)
            warn(f"token for clients, sent as 'Authorization: Bearer TOKEN': {token}")
        hosts = [*_LOCAL, *names]
        own = [f"{scheme}://{name}" for name in hosts for scheme in ("http", "https")]
        return cls(
            host=args.host,
            port=args.port,
            hosts=_with_any_port(hosts),
            origins=(*_with_any_port(own), *map(_origin, args.allow_origin)),
            token=token,
        )

    def check_address(self) -> None:
        """Raise InputError if the server could not listen there, before the index is loaded."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            with socket.create_server((self.host, self.port), family=family):
                pass
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"cannot listen at {self.host}:{self.port}: {reason}; give another --port"
            ) from error

    def guarded(self, app: App, *, open_paths: Sequence[str] = ()) -> App:
        """Return an application that answers requests without the token with status 401.

        open_paths: paths that need none.
        """
        if not self.token:
            return app
        expected = f"bearer {self.token}".encode()

        async def guard(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
            if scope["type"] == "lifespan" or scope["path"] in open_paths or _has_token(scope, expected):
                await app(scope, receive, send)
            else:
                await _refuse(send, 401, [(b"www-authenticate", b"Bearer")])

        return guard

    def checked(self, app: App) -> App:
        """Return an application that answers foreign values of Host with status 421, of Origin with 403."""

        async def check(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
            if scope["type"] != "lifespan":
                host, origin = _header(scope, b"host"), _header(scope, b"origin")
                if not _is_known(host, self.hosts):
                    await _refuse(send, 421)
                    return
                if origin and not _is_known(origin, self.origins):
                    await _refuse(send, 403)
                    return
            await app(scope, receive, send)

        return check


async def _refuse(send: Any, status: int, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Answer with a status and nothing else."""
    shown = [*headers, (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": status, "headers": shown})
    await send({"type": "http.response.body", "body": b""})


def _header(scope: MutableMapping[str, Any], name: bytes) -> str:
    """The value of a header, in small letters; of several none is right."""
    return b" ".join(value for given, value in scope["headers"] if given == name).decode("latin-1").lower()


def _is_known(value: str, known: Sequence[str]) -> bool:
    """Whether a value is among those known, of which one that ends with ":*" has any port."""
    before, _, port = value.rpartition(":")
    return value in known or (port.isascii() and port.isdigit() and f"{before}:*" in known)


def _has_token(scope: MutableMapping[str, Any], expected: bytes) -> bool:
    """Whether a request sends the token; the comparison takes as long for a wrong one."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(sent) != 1:
        return False
    scheme, _, token = sent[0].partition(b" ")
    return hmac.compare_digest(scheme.lower() + b" " + token.strip(), expected)


def _given_token(path: Path | None) -> str:
    """The token of the file or the environment; empty if neither is given."""
    if path is not None:
        try:
            with path.open(encoding="utf-8") as file:
                token, source = file.read(1_024).strip(), f"the file {path}"
        except (OSError, UnicodeError) as error:
            raise InputError(f"cannot read the token from {path}: {error}") from None
    elif (value := os.environ.get(TOKEN_VARIABLE)) is not None:
        token, source = value.strip(), TOKEN_VARIABLE
    else:
        return ""
    if not _TOKEN.fullmatch(token):
        raise InputError(
            f"the token in {source} must have 16 to 512 printable ASCII characters without spaces, "
            f"got {len(token)}; make one with: openssl rand -hex 32"
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_any(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return host == ""


def _bracketed(name: str) -> str:
    """A name as the header Host has it. Raises InputError if it is none."""
    name = name.lower()
    if re.fullmatch(r"[a-z0-9_.-]{1,253}(?::\d{1,5})?", name):
        return name
    try:
        return f"[{ip_address(name.strip('[]'))}]"
    except ValueError:
        raise InputError(
            f"--allow-host must be a name or an address such as search.example.com, got {name!r}"
        ) from None


def _origin(origin: str) -> str:
    """An origin as browsers send it. Raises InputError if it is none."""
    if re.fullmatch(r"[a-z][a-z0-9+.-]{0,30}://[^\s/*?#@]{1,260}", origin.lower()):
        return origin.lower()
    raise InputError(f"--allow-origin must be like https://example.com, without a path, got {origin!r}")


def _with_any_port(names: list[str]) -> tuple[str, ...]:
    return tuple(form for name in names for form in (name, f"{name}:*"))
