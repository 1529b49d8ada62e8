"""Text that a terminal or a page shows and does not obey."""

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: escapes, titles, clipboard, bell
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # marks that change the direction of other text
    "\u2028\u2029\ufff9-\ufffb\U000e0001\ud800-\udfff]"
)


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
