"""Lists in the API reference: the lines "name: text" of a docstring become a list of parameters."""

import re
from typing import Any

import griffe

_PARAMETER = re.compile(r"^((?:\w+)(?:, \w+)*): ")
_SECTION = re.compile(r"^(?:Returns|Raises|Source|Differs|Yields)\b")


def listed(text: str) -> str:
    """Turn parameter lines into a Markdown list, and the sentences after them into a paragraph."""
    lines: list[str] = []
    in_list = in_code = False
    before = ""
    for line in text.splitlines():
        in_code ^= line.lstrip().startswith("```")
        begins_sentence = before.endswith((".", ":")) and line[:1].isupper()
        if in_code or (line.startswith((" ", ">>>")) and not in_list):
            lines.append(line)
        elif (match := _PARAMETER.match(line)) and not _SECTION.match(line):
            lines += [] if in_list else [""]
            lines.append(f"- `{match[1]}`: {line[match.end() :]}")
            in_list = True
        elif in_list and line and not _SECTION.match(line) and not begins_sentence:
            lines.append(f"    {line.strip()}")
        else:
            lines += [""] if in_list or _SECTION.match(line) else []
            lines.append(line)
            in_list = False
        before = line
    return "\n".join(lines)


class Parameters(griffe.Extension):
    """The griffe extension that mkdocs.yml names."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = listed(obj.docstring.value)
