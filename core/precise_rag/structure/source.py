"""Source code: a definition, such as a function or class, stands above its body and its comment."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Literal, NamedTuple

from precise_rag.structure.blocks import DEEPEST, BlockKind, BlockStart
from precise_rag.structure.marks import ITEM
from precise_rag.structure.plain_lines import read_lines

_NAMING = (
    "def|class|func|fun|fn|function|sub|proc|interface|struct|enum|union|trait|impl|module|namespace|object"
    "|protocol|extension|record|type"
)
_BEFORE = (
    "export|default|declare|public|private|protected|internal|static|final|abstract|async|unsafe|override"
    r"|virtual|inline|const|extern|open|sealed|partial|data|pub(?:\(\w{1,10}\))?"
)
_DEFINITION = re.compile(
    r"(?i:create[ \t](?:[a-z]{2,12}[ \t]){1,4}[^\n;]{1,200}\Z)"
    rf"|(?:(?:{_BEFORE})[ \t]{{1,4}}){{0,5}}(?:{_NAMING})[ \t]{{1,4}}[^\s=,;.)][^\n;]{{0,300}}\Z"
    r"|(?!(?:if|for|while|switch|catch|return|else|do|with|when|until|unless|new|await)\b)"
    r"(?:[\w<>\[\],.*&:?~@]{1,80}[ \t]{1,4}){0,6}[\w~.]{1,80}"
    r"(?:[ \t]*=[ \t]*(?:async )?function\b[ \t]*\w{0,80})?[ \t]?\([^\n;(){}]{0,300}\)[^\n(){}=;]{0,120}\{\Z"
)
"""The line that names a function, class, table or the like, with its body behind it."""
_SIGNATURE = re.compile(
    r"[\w<>\[\],.*&:?~ \t]{0,200}\b[\w~]{1,80}\??(?:<[^\n<>()]{1,100}>)?"
    r"\([^\n]{0,300}(?:\):[^\n]{1,200};|\);?)\Z"
)
"""A line that declares one without a body."""
_LIKELY = re.compile(
    r"\A#!|\A<\?php|(?m:^[ \t]{0,40}(?:[a-z]{3,12}[ \t]{1,4}){0,5}"
    rf"(?:{_NAMING}|(?i:create))[ \t]{{1,4}}\w|[;{{}}][ \t]{{0,9}}$)"
)
_OTHER = re.compile(r"(?m)^(?:```|~~~|=(?:head\d|pod|begin)\b|\.\. [\w-]{1,40}::|\\[a-z]{3,15}\{)|\AWEBVTT")
"""What it has not: marks of Markdown, reStructuredText, LaTeX, captions, or manuals of Perl and Ruby."""
_ATTRIBUTE = re.compile(r"@\w|#\[|\[\w")
_DIRECTIVE = "include|define|undef|if\\w*|el\\w+|endif|pragma|error|line|region|endregion|import"
_DOCSTRING = re.compile(r"[rRuU]?(?:\"{3}|'{3})")
_COMMENT = re.compile(
    rf"(?:///?!?|#(?!(?:{_DIRECTIVE})\b|!?\[)|--(?=[\s-]|\Z)|;;|/\*\*?!?|\*(?=[\s*/]|\Z)"
    rf"|{_DOCSTRING.pattern})[ \t]*"
)
_REGIONS = (("/*", "*/"), ('"""', '"""'), ("'''", "'''"))
_TAG = re.compile(r"[@\\][a-z]\w|:\w[\w ]{0,40}:|\*{0,2}\w{1,40}(?: ?\([^()\n]{1,80}\))? ?:[ \t]\S")
"""The beginning of what a comment says on a parameter, a result or the like."""
_CLOSING = re.compile(r"[)\]}]|end\b")
_CODE = re.compile(
    r"\A(?:[)\]}]|(?:begin|break|else|end|from|import|include|package|raise|require|return|try|use|using)\b[^.]*\Z)"
    r"|\w\(|\)[;:{,]?\Z|[{}]|\s[-+*/:|&.]?=[=>]?\s|\w=[\"'(\[{]|->|::|\A\S{1,80}(?: \S{1,80}){0,5}[,;]\Z"
)
"""What lines of prose do not have, or seldom."""
_FEWEST_LINES, _SHARE_OF_CODE = 5, 0.5
"""Source code has so many lines of code at least, and this share of its lines without comments."""
_LONGEST_TITLE, _LINES_OF_TITLE = 160, 20


class _Line(NamedTuple):
    """A line that is not blank. after_blank: whether the line before is blank."""

    start: int
    words: str
    indent: int
    kind: Literal["code", "comment"]
    after_blank: bool


def is_source(text: str) -> bool:
    """Check whether a text is source code: with definitions or statements, and no prose but in comments."""
    if _LIKELY.search(text) is None or _OTHER.search(text) is not None:
        return False
    lines = [line for line in _lines(text) if line.kind == "code"]
    code = [line.words for line in lines if _CODE.search(line.words)]
    if len(code) < max(_FEWEST_LINES, _SHARE_OF_CODE * len(lines)):
        return False
    return 2 * sum(words[-1] in ";{}" for words in code) > len(lines) or any(
        (below.indent > line.indent or below.words == "{") and _DEFINITION.match(line.words)
        for line, below in pairwise(lines)
    )


def _lines(text: str) -> Iterator[_Line]:
    region = ""
    for start, words, indent, after_blank, _ in read_lines(text):
        is_comment = bool(region) or _COMMENT.match(words) is not None
        rest = words.lstrip("rRuU") if is_comment else ""
        if region:
            region = "" if region in words else region
        elif opening := next((pair for pair in _REGIONS if rest.startswith(pair[0])), None):
            region = "" if opening[1] in rest[len(opening[0]) :] else opening[1]
        yield _Line(start, words, indent, "comment" if is_comment else "code", after_blank)


def source_blocks(text: str) -> Iterator[tuple[BlockStart | None, int, tuple[str, ...]]]:
    """Yield the start of each block of source code, or None, a place, and the definitions above it.

    They are the outermost first. The comment in front of a definition, and its docstring, are below its name.
    """
    lines = list(_lines(text))
    around: list[tuple[int, str]] = []  # indents and titles of the definitions around
    opened: tuple[str, ...] | None = None
    """What is above the block of code that is being read; None if none is."""
    body: tuple[str, ...] = ()  # what is above its next lines
    is_named = False  # whether a docstring goes on with the block that a definition begins
    number = 0
    while number < len(lines):
        line = lines[number]
        while around and around[-1][0] >= line.indent + bool(_CLOSING.match(line.words)):
            around.pop()
        path = tuple(title for _, title in around)[-DEEPEST:]
        if line.kind == "comment":
            end = number + 1
            while end < len(lines) and lines[end].kind == "comment" and _goes_on(lines[end]):
                end += 1
            title = _title_below(lines, end, line.indent)
            if title or end - number > 1 or not around:
                above = (*path, title) if title else path
                blocks = _of_comment(lines[number:end])
                yield from ((block, block[0], above) for block in islice(blocks, is_named, None))
                opened, is_named, number = None, False, end
                continue
        title, end = _definition(lines, number) if line.kind == "code" else ("", number + 1)
        is_named = bool(title) and _DOCSTRING.match(lines[end].words if end < len(lines) else "") is not None
        if title or opened is None or path != body or (line.after_blank and opened != body):
            yield (line.start, "item", 1) if is_named else (line.start, "code", 0), line.start, path
            opened, body = path, (*path, title) if title else path
        if title:
            around.append((line.indent, title))
            yield None, lines[number + 1].start if number + 1 < len(lines) else len(text), body
        number = end


def _goes_on(line: _Line) -> bool:
    """Whether a line of a comment belongs to the comment before it."""
    return not line.after_blank or not _COMMENT.match(line.words) or line.words[0] == "*"


def _title_below(lines: Sequence[_Line], number: int, indent: int) -> str:
    """The title of the definition right below a comment, also behind its attributes; "" without one."""
    for place in range(number, min(number + _LINES_OF_TITLE, len(lines))):
        line = lines[place]
        is_apart = line.after_blank and (not indent or place > number or lines[place - 1].words[-2:] != "*/")
        if is_apart or line.kind == "comment" or line.indent != indent:
            return ""
        if _ATTRIBUTE.match(line.words) is None:
            return _definition(lines, place)[0] or (_cut(line.words) if _SIGNATURE.match(line.words) else "")
    return ""


def _definition(lines: Sequence[_Line], number: int) -> tuple[str, int]:
    """The words of a definition, "" if a line begins none, and the number behind its last line."""
    if _DEFINITION.match(lines[number].words) is None:
        return "", number + 1
    words = ""
    is_table = lines[number].words[:6].lower() == "create"
    for end, line in enumerate(lines[number : number + _LINES_OF_TITLE], number + 1):
        words = f"{words} {line.words}".strip()
        if is_table or words.count("(") <= words.count(")"):
            return _cut(words), end
    return _cut(words), number + 1


def _cut(words: str) -> str:
    return words[:_LONGEST_TITLE].rstrip(" \t{:;(")


def _of_comment(lines: Sequence[_Line]) -> Iterator[BlockStart]:
    """The blocks of a comment: paragraphs, items, tags, names above what is indented below, and examples."""
    marks = [match.end() if (match := _COMMENT.match(line.words)) else 0 for line in lines]
    columns = [line.indent + mark for line, mark in zip(lines, marks, strict=True)]
    start: int | None = lines[0].start
    """Where the next block begins, if no line of it has been read."""
    in_code = False
    for number, (line, mark) in enumerate(zip(lines, marks, strict=True)):
        words = line.words[mark:]
        is_fence = words.startswith("```")
        below = lines[number + 1 : number + 2]
        has_more = bool(below) and not below[0].after_blank and columns[number] < columns[number + 1]
        start = line.start if start is None and line.after_blank else start
        kind: BlockKind | None = None
        if is_fence or (words.startswith(">>>") and start is not None):
            kind = None if in_code else "code"
            in_code = is_fence and not in_code
        elif not in_code and not words.strip("*/ "):
            start = line.start if start is None else start
        elif not in_code and (ITEM.match(f"{words} ") or _TAG.match(words) or (has_more and number)):
            kind, start = "item", line.start if start is None else start
        elif not in_code and start is not None:
            kind = "paragraph"
        if kind is not None:
            yield line.start if start is None else start, kind, int(kind == "item")
            start = None
