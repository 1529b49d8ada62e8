"""Remove keys and passwords from text that leaves the library: errors, traces, pages, logs and names.

`visible` writes control characters of such text as escapes.

The keys of clients that were made (`remember`) are removed, and those that the environment held when a client
was made. So is text in the form of a key, of an authorization header, or of a URL with a password. Every
pattern looks at a bounded number of characters, so that no text takes long.
"""

import json
import os
import re
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

HIDDEN = "[hidden]"
"""What stands in place of a key."""

_SHORTEST, _ANYWHERE = 6, 12
"""Characters of the shortest key, and of the shortest that is hidden inside other words, too."""
_LONGEST_QUOTE = 400
_READ_CHARACTERS = 20_000
_MOST = 1_000
_PLACEHOLDERS = frozenset({"api-key", "api_key", "apikey", "dummy-key", "lm-studio", "no-key", "ollama"})
_remembered: dict[str, None] = {}

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: escapes, titles, clipboard, bell
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # marks that change the direction of other text
    "\u2028\u2029\ufff9-\ufffb\U000e0001\ud800-\udfff]"
)

_KEY_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)$", re.I)
_SECRET_FIELD = re.compile(r"authorization|cookie|key|password|secret|token$", re.I)


class _Shape(NamedTuple):
    """The form of a key. starts: texts in lower case, one of which is in any text with such a key."""

    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    instead: str


_SHAPES = (
    _Shape(
        ("://",),
        re.compile(r"([a-z][a-z0-9+.-]{0,20}://)[^\s/?#\"'<>]{1,500}@", re.I),
        rf"\1{HIDDEN}@",
    ),
    _Shape(
        ("key=", "token=", "sig=", "signature=", "password=", "secret="),
        re.compile(
            r"([?&](?:api[-_]?key|key|access[-_]?token|token|sig|signature|password|secret)=)"
            r"[^&\s\"'<>#]{1,1000}",
            re.I,
        ),
        rf"\1{HIDDEN}",
    ),
    _Shape(
        ("bearer", "basic"),
        re.compile(r"\b(bearer|basic)(\s{1,5})(?=[\w.~+/*-]{0,500}[\d=*])[\w.~+/=*-]{12,2000}", re.I),
        rf"\1\2{HIDDEN}",
    ),
    _Shape(
        ("api", "authorization", "access", "password"),
        re.compile(
            r"((?:x-)?api[-_ ]?key|authorization|access[-_]?token|password)([\"']?\s{0,5}[:=]\s{0,5}[\"']?)"
            r"(?=[^\s\"',;&]{0,500}[\d*])[^\s\"',;&\[\]]{8,2000}",
            re.I,
        ),
        rf"\1\2{HIDDEN}",
    ),
    _Shape(
        ("sk-", "pk-", "rk-", "sk_", "pk_", "rk_"),
        re.compile(r"\b(?:sk|pk|rk)[-_](?=[\w*-]{0,200}[\d*])[\w*-]{12,500}"),
        HIDDEN,
    ),
    _Shape(
        ("hf_", "gsk_", "gho_", "ghp_", "ghs_", "ghu_", "aiza", "akia", "xox"),
        re.compile(
            r"\b(?:hf_\w{20,200}|gsk_\w{20,200}|gh[opsu]_\w{20,200}|AIza[\w-]{30,100}|AKIA[0-9A-Z]{16}"
            r"|xox[abp]-[\w-]{10,200})"
        ),
        HIDDEN,
    ),
)


def remember(*keys: str | None) -> None:
    """Remove these keys from now on. Placeholders and keys of less than six characters are not remembered.

    The last thousand keys are remembered.
    """
    for key in keys:
        if isinstance(key, str) and len(key) >= _SHORTEST and key.lower() not in _PLACEHOLDERS:
            _remembered.pop(key, None)
            _remembered[key] = None
    while len(_remembered) > _MOST:
        del _remembered[next(iter(_remembered))]


def remember_environment() -> None:
    """Remember the keys that the environment holds now; each client calls this when it is made."""
    for name, value in os.environ.items():
        if _KEY_NAME.search(name) and len(value) >= 8 and not value.startswith(("/", "~")):
            remember(value)


def remember_fields(fields: Any) -> None:
    """Remember the values of fields whose names say that they hold a key, such as headers; nested, too."""
    if not isinstance(fields, dict):
        return
    for name, value in fields.items():
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
    """Split a URL into the URL without user and password, and these two, or None if it has none.

    The password is remembered.

    user_is_key: whether a user without a password is a key to remember, as in "https://TOKEN@host".
    """
    if url is None:
        return None, None
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, None
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = userinfo.partition(":")
    remember(password, unquote(password), user if user_is_key and not password else "")
    return parts._replace(netloc=host).geturl(), (unquote(user), unquote(password))


def redacted(text: str) -> str:
    """Return `text` without keys and passwords."""
    text = without_known_keys(text)
    lowered = text.lower()
    for shape in _SHAPES:
        if any(start in lowered for start in shape.starts):
            text = shape.pattern.sub(shape.instead, text)
    return text


def without_known_keys(text: str) -> str:
    """Return `text` without the keys that are remembered; what only has the form of a key stays."""
    known = _known_pattern(tuple(_remembered))
    return text if known is None else known.sub(HIDDEN, text)


class KeyFreeStream:
    """Removes the remembered keys from a text that comes in pieces, as from the joined text.

    What may be the beginning of a key is held back until the next pieces tell.
    """

    def __init__(self) -> None:
        self._before = ""
        self._held = ""

    def add(self, piece: str) -> str:
        """Return what can be shown now; it may be empty."""
        self._held += piece
        return self._shown(self._undecided())

    def end(self) -> str:
        """Return the rest."""
        return self._shown(len(self._held))

    def _undecided(self) -> int:
        """Where the first text begins that may become a key, or that is a short key if no letter follows."""
        forms = _known_forms(tuple(_remembered))
        end = len(self._held)
        for place in range(max(0, end - max(map(len, forms), default=0)), end):
            tail = self._held[place:].lower()
            if any(form.startswith(tail) for form in forms):
                return place
        return end

    def _shown(self, end: int) -> str:
        """The text up to `end`, or up to the end of a key that begins before it."""
        text, first, known = self._before + self._held, len(self._before), _known_pattern(tuple(_remembered))
        pieces, place = [], first
        for match in () if known is None else known.finditer(text, first):
            if match.start() < first + end:
                pieces += [text[place : match.start()], HIDDEN]
                place = match.end()
        end = max(place, first + end)
        pieces.append(text[place:end])
        self._before, self._held = text[:end][-1:], text[end:]
        return "".join(pieces)


def message_of(error: Exception) -> str:
    """Return the message of an exception without keys, on one line and shortened; its type if it is empty."""
    return quoted(error) or type(error).__name__


def quoted(said: Any) -> str:
    """Return what a server said without keys, on one line and shortened."""
    try:
        text = " ".join(str(said).split())
    except Exception:  # a message that cannot be made must not hide the failure
        text = type(said).__name__
    if len(text) > _READ_CHARACTERS:
        text = text[:_READ_CHARACTERS].rpartition(" ")[0]  # half a key would not be recognised
    return redacted(text)[:_LONGEST_QUOTE]


def visible(text: str) -> str:
    r"""Return `text` with every control character written as an escape such as \x1b or \u202e.

    Lone surrogates are also written so. Line feeds and tabs stay; CR LF becomes a line feed.
    """
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    r"""Return `text` as one line: as `visible`, with line feeds and tabs written as \n and \t."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


@lru_cache(maxsize=4)
def _known_forms(keys: tuple[str, ...]) -> tuple[str, ...]:
    """All keys in lower case, as they are, as in a URL, and as in JSON; longer ones first."""
    forms = {form.lower() for key in keys for form in (key, quote(key, safe=""), json.dumps(key)[1:-1])}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


@lru_cache(maxsize=4)
def _known_pattern(keys: tuple[str, ...]) -> re.Pattern[str] | None:
    forms = _known_forms(keys)
    return re.compile("|".join(map(_form_pattern, forms)), re.I) if forms else None


def _form_pattern(form: str) -> str:
    """A short key is only hidden where it stands alone, because it may be a part of a word."""
    exact = re.escape(form)
    return exact if len(form) >= _ANYWHERE else rf"(?<![A-Za-z0-9]){exact}(?![A-Za-z0-9])"
