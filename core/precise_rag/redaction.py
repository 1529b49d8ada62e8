"""Text that is safe to show: without keys and passwords, and with control characters as escapes.

Hidden are the keys of clients (`remember`), those that the environment held when a client was made
(`remember_environment`), and passwords in addresses.
"""

import os
import re
import sys
from base64 import b64encode
from bisect import bisect_left
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

HIDDEN = "[hidden]"
"""What stands in place of a key."""
_SHORTEST, _ANYWHERE = 6, 12
"""Characters of the shortest key, and of the shortest that is hidden inside other words, too."""
_LONGEST_QUOTE = 400
_MOST_KEYS = 1_000
_PLACEHOLDERS = frozenset({"api-key", "api_key", "apikey", "dummy-key", "lm-studio", "no-key", "ollama"})
_remembered: dict[str, None] = {}
_KEY_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)$", re.I)
_SECRET_FIELD = re.compile(r"authorization|cookie|key(?!word)|password|secret|token$", re.I)
_LAST_WORD = re.compile(rf"(?<![A-Za-z0-9])[A-Za-z0-9]{{1,{_ANYWHERE}}}\Z")
"""A word that a short key may be, or not, by what follows."""
_BEGUN_ADDRESS = re.compile(r"://[^\s/?#\"'<>]{0,500}\Z")
_IN_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]{0,20}://)[^\s/?#\"'<>]{1,500}@", re.I)
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: escapes, titles, clipboard, bell
    "\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f"  # marks that change the direction of other text
    "\u180e\u2028\u2029\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"  # and that nobody sees
)


def remember(*keys: str | None) -> None:
    """Hide these keys, the last thousand, but no placeholders and none of less than six characters."""
    for key in keys:
        if isinstance(key, str) and len(key) >= _SHORTEST and key.lower() not in _PLACEHOLDERS:
            for form in (key, quote(key, errors="replace"), quote(key, safe="", errors="replace")):
                _remembered.pop(form, None)
                _remembered[form] = None
    for form in [*_remembered][:-_MOST_KEYS]:
        _remembered.pop(form, None)


def remember_environment() -> None:
    """Hide the keys that the environment holds now, and its proxies' passwords; each client calls this."""
    for name, value in os.environ.items():
        without_password(value if name.lower().endswith("_proxy") else None, user_is_key=False)
        if _KEY_NAME.search(name) and len(value) >= 8 and not value.startswith(("/", "~")):
            remember(value)


def remember_fields(fields: Any) -> None:
    """Hide the values of fields whose names say that they hold a key, such as headers; nested, too."""
    for name, value in fields.items() if isinstance(fields, dict) else ():
        value = value.get_secret_value() if hasattr(value, "get_secret_value") else value
        if isinstance(value, str) and _SECRET_FIELD.search(str(name)):
            remember(value, value.rpartition(" ")[2])
        remember_fields(value)


def without_secrets(fields: Any) -> Any:
    """Return a copy of nested fields without those whose names say that they hold a key."""
    if not isinstance(fields, dict):
        return fields
    return {
        name: without_secrets(value)
        for name, value in fields.items()
        if isinstance(value, dict) or not _SECRET_FIELD.search(str(name))
    }


def without_password(
    url: str | None, *, user_is_key: bool = True
) -> tuple[str | None, tuple[str, str] | None]:
    """Split a URL into the URL without user and password, and these two, hidden from now on, or None.

    user_is_key: whether a user without a password is a key to hide, as in "https://TOKEN@host".
    """
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return url, None
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = map(unquote, userinfo.partition(":"))
    sent = b64encode(f"{user}:{password}".encode(errors="replace")).decode()
    remember(password, userinfo.partition(":")[2], sent, user if user_is_key and not password else "")
    return parts._replace(netloc=host).geturl(), (user, password)


def short_address(url: str | None, base: str = "") -> str:
    """Return a URL, perhaps relative to `base`, without user, password, query and fragment; "" if none."""
    try:
        parts = urlsplit(urljoin(base, url) if url else "")
    except ValueError:
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def redacted(text: str) -> str:
    """Return `text` without the keys that are hidden, and without passwords in addresses."""
    folded = text.casefold()
    known, _ = _known_keys(frozenset(key for key in [*_remembered] if key.casefold() in folded))
    return _IN_ADDRESS.sub(rf"\1{HIDDEN}@", re.sub(known, HIDDEN, text, flags=re.I) if known else text)


class RedactedStream:
    """`redacted` for a text in pieces: the end that may begin a key is held back until more has come."""

    def __init__(self) -> None:
        self._shown = self._held = ""

    def add(self, piece: str, *, last: bool = False) -> str:
        """Return what can be shown with one more piece, and all that is left with the last one."""
        text = self._shown + self._held + piece
        end = len(text) if last else _begun(text, len(self._shown))
        done, self._held = redacted(text[:end]), text[end:]
        new, self._shown = done[len(self._shown) :], done[-4:]
        return new


def _begun(text: str, start: int) -> int:
    """Where a key, or an address with a password, begins that may go on behind a text; else its length."""
    _, keys = _known_keys(frozenset(_remembered))
    address = _BEGUN_ADDRESS.search(text)
    end = max(start, address.start()) if address else len(text)
    for at in range(max(start, len(text) - max(map(len, keys), default=0)), end):
        tail = text[at:].lower()
        if bisect_left(keys, tail) < bisect_left(keys, tail + chr(sys.maxunicode)):
            word = _LAST_WORD.search(text, start, at)
            return word.start() if word else at
    return end


def quoted(said: Any) -> str:
    """Return what a server or an exception says without keys, on one line, cut; or its type's name."""
    try:
        text = redacted(" ".join(str(said).split()))[:_LONGEST_QUOTE]
    except Exception:  # a message that cannot be made must not hide the failure
        text = ""
    return text or type(said).__name__


def visible(text: str) -> str:
    r"""Return `text` with control characters, but not \n and \t, and surrogates as escapes such as \x1b."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    r"""Return `text` as one line: as `visible`, with line feeds and tabs written as \n and \t."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


@lru_cache(maxsize=4)
def _known_keys(keys: frozenset[str]) -> tuple[str, list[str]]:
    """A pattern of the keys, and their list. A short key must stand alone: it may be a part of a word."""
    forms = [
        re.escape(key) if len(key) >= _ANYWHERE else rf"(?<![A-Za-z0-9]){re.escape(key)}(?![A-Za-z0-9])"
        for key in sorted(keys, key=len, reverse=True)
    ]
    return "|".join(forms), sorted(key.lower() for key in keys)
