"""Prompts that keep instructions apart from data.

The system message holds the instructions and is the same for every question. What varies is data in the
user's message: passages, questions and answers, each below a line that begins with a mark. The mark is made
from the texts and occurs in none of them. So the same texts make the same prompt, and no text can pass as an
instruction, as another text, or as the source of a passage, which such a line names.
"""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from precise_rag._data import packaged_toml
from precise_rag.types import Message

INSTRUCTIONS = packaged_toml("prompts/instructions.toml")
"""What models are told."""
_DATA_RULE: str = INSTRUCTIONS["data_rule"]
CONTROL_TOKEN = re.compile(
    r"<(?:[|｜](?=\w)[^<>\s]{1,60}|[^\W_][^<>\s]{0,60}[|｜]|/?s|\w{1,30}_of_\w{1,30}|(?:\w{1,20}:)?[bse]o[a-z]"
    r"|[BE]OS(?:_TOKEN)?|pad|unk|sep|(?:unused|reserved_|extra_id_|SPECIAL_)\d{1,4}|</?SYS>)>"
    r"|\[(?:/?(?:INST|(?:SYSTEM|TOOL|AVAILABLE)_[A-Z]{1,20})|\|[a-z]{3,30}\||[BE]O[ST])\]|\[e~\[|\]~b\]"
)
"""What chat formats write around messages. In a text it has a space, so that no server reads it: `</s >`."""
_LONGEST_SOURCE = 200
_MARK_LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqvxz")


class Prompt(NamedTuple):
    """A prompt for one call.

    version: name and version of the prompt's text.
    messages: the system message and the user message.
    schema: JSON schema of the reply, if the reply is JSON.
    mark: begins the lines that say what follows.
    context: the passages and their sources, without what the prompt writes around them.
    """

    version: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    mark: str = ""
    context: str = ""

    def shows(self, reply: str, *, in_data: bool = False) -> bool:
        """Return whether the instructions show this reply, as an example; with `in_data` also the texts."""
        said = reply[reply.find("{") : reply.rfind("}") + 1] if "{" in reply else ""
        shown = " ".join(one.content for one in self.messages[: 1 + in_data])
        return "".join((said or reply).split()) in "".join(shown.split())


class Shown(NamedTuple):
    """A passage as a prompt shows it.

    source: where it comes from, for instance a title and headings; empty if that is not said again.
    """

    text: str
    source: str = ""


def make_prompt(
    version: str,
    instructions: str,
    passages: Iterable[str | Shown],
    data: Iterable[tuple[str, str]],
    schema: Mapping[str, Any] | None = None,
) -> Prompt:
    """Return the prompt with instructions, and with texts below lines that begin with a mark.

    passages: texts that are numbered from 1, right behind the mark.
    data: further texts, each with a word for it, such as "question"; empty texts are left out.
    """
    shown = [Shown(one) if isinstance(one, str) else one for one in passages]
    sources = ("".join(filter(str.isprintable, " ".join(one.source.split()))) for one in shown)
    named = [(one.text.strip(), source[:_LONGEST_SOURCE]) for one, source in zip(shown, sources, strict=True)]
    further = [(label, text.strip()) for label, text in data if text]
    mark = _mark(part for one in (*named, *further) for part in one)
    blocks = [
        f"{mark}{number}: {source}\n{text}" if source else f"{mark}{number}\n{text}"
        for number, (text, source) in enumerate(named, start=1)
    ]
    blocks += [f"{mark} {label}\n{text}" for label, text in further]
    user = CONTROL_TOKEN.sub(lambda token: f"{token[0][:-1]} {token[0][-1]}", "\n\n".join(blocks))
    messages = (Message("system", f"{instructions}\n\n{_DATA_RULE}"), Message("user", user))
    return Prompt(version, messages, schema, mark, "\n".join(part for one in named for part in one))


def repeats_instructions(reply: str) -> bool:
    """Return whether a whole sentence of our own instructions stands in a reply."""
    said = " ".join(reply.split())
    return any(one in said for one in _sentences(INSTRUCTIONS) if len(one) > 30)


def _sentences(told: Any) -> list[str]:
    if isinstance(told, str):
        return re.split(r"(?<=[.:}])\s", " ".join(told.split()))
    parts = told.values() if isinstance(told, Mapping) else told
    return [sentence for part in parts for sentence in _sentences(part)]


def _mark(texts: Iterable[str]) -> str:
    """At least three letters that occur in none of the texts, and that none of them could foresee."""
    material = "\n".join(texts).casefold()
    letters = sha256(material.encode("utf-8", "surrogatepass")).hexdigest().translate(_MARK_LETTERS)
    return next(letters[:n] for n in range(3, len(letters) + 1) if letters[:n] not in material)


def object_schema(properties: Mapping[str, Any], title: str = "") -> dict[str, Any]:
    """Return the JSON schema of an object that has all of these properties, and no others."""
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return {**({"title": title} if title else {}), **schema, "additionalProperties": False}


def lettered(options: Sequence[str]) -> str:
    """Write the options of a question on lines that begin with A, B, C, …"""
    return "\n".join(map("{}. {}".format, string.ascii_uppercase, options))
