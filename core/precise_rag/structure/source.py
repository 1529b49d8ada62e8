"""Source code: a definition, such as a function or class, stands above its body and its comment."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Literal, NamedTuple

from precise_rag._data import packaged_toml
from precise_rag.structure.blocks import DEEPEST, BlockKind, BlockStart
from precise_rag.structure.marks import ITEM
from precise_rag.structure.plain_lines import read_lines

_NAMING, _BEFORE = packaged_toml("structure/code_words.toml").values()
_DEFINITION = re.compile(
    r"(?i:create[ \t](?:[a-z]{2,12}[ \t]){1,4}[^\n;]{1,200}\Z)"
    rf"|(?:(?:{_BEFORE})[ \t]{{1,4}}){{0,5}}(?:{_NAMING})[ \t]{{1,4}}[^\s=,;.)][^\n;]{{0,300}}\Z"
    r"|(?!(?:if|for|foreach|while|switch|case|catch|return|else|do|with|when|until|unless|new|await|using|lock)\b)"
    r"(?:[\w<>\[\],.*&:?~@]{1,80}[ \t]{1,4}){0,6}(?:[\w~.]|::){1,80}"
    r"(?:[ \t]*=[ \t]*(?:async )?function\b[ \t]*\w{0,80})?[ \t]?\([^\n;(){}]{0,300}\)"
    r"(?:[^\n(){}=;]{0,120}|[ \t]?:[ \t][^\n{}=;]{1,200})\{\Z"
    r"|[\w.$]{1,80}\([\"'`][^\"'`\n]{1,200}[\"'`],[^\n;]{0,200}(?:=>|\bfunction\b[^\n;{}]{0,200}\))[ \t]?\{\Z"
    rf"|(?:(?:{_BEFORE}|let|var)[ \t]{{1,4}}){{1,5}}\w{{1,80}}[^\n;]{{0,200}}=>[ \t]?\{{\Z"
)
"""The line that names a function, class, table or the like, with its body behind it."""
_SIGNATURE = re.compile(
    r"[\w<>\[\],.*&:?~ \t]{0,200}\b[\w~]{1,80}\??(?:<[^\n<>()]{1,100}>)?"
    r"\([^\n]{0,300}(?:\):[^\n)]{1,200};|\);?)\Z"
)
"""A line that declares one without a body."""
_LIKELY = re.compile(
    r"\A#!|\A<\?php|(?m:^[ \t]{0,40}(?:[a-z]{3,12}[ \t]{1,4}){0,5}"
    rf"(?:{_NAMING}|(?i:create))[ \t]{{1,4}}\w|[;{{}}][ \t]{{0,9}}$)"
)
_SHELL = re.compile(r"#!\S{1,40}/(?:env )?\w{0,4}sh\b")
_OTHER = re.compile(
    r"(?m)^(?:```|~~~|=(?:head\d|pod|begin)\b|\.\. [\w-]{1,40}::|\\[a-z]{3,15}\{|={4,200}[ \t]\w)"
    r"|\A(?:WEBVTT|\s{0,99}[\w.:-]{1,80}\(\d\w{0,9}\)[ \t]{2,200}\w)"
)
"""What only docstrings have: marks of Markdown, reStructuredText, LaTeX, Perl, captions, manuals, logs."""
_ATTRIBUTE = re.compile(r"@\w|#\[|\[\w|template\b[^(){}]*\Z")
_DIRECTIVE = "include|define|undef|if\\w*|el\\w+|endif|pragma|error|line|region|endregion|import"
_IN_QUOTES = re.compile(r"(?s)(\"{3}|'{3}).*?\1")
_DOCSTRING = re.compile(r"[rRuU]?(?:\"{3}|'{3})")
_COMMENT = re.compile(
    rf"(?:///?!?|#(?!(?:{_DIRECTIVE})\b|!?\[)|--(?=[\s-]|\Z)|;;|/\*\*?!?|\*(?=[\s*/]|\Z)"
    rf"|{_DOCSTRING.pattern})[ \t]*"
)
_LONG_COMMENT = re.compile(r"/\*(?!.*\*/)|[rRuU]?(\"{3}|'{3})(?!.*\1)")
_TEXT = re.compile(
    r"<<[-~<]? ?([\"']?)([A-Z][A-Z_\d]{1,40})\b\1|(?:[=(,:?+{>]|return) ?\w{0,20}(`)[^`]*\Z|(\"{3}|'{3})|\\\Z"
)
"""The beginning of a text in code, and its end: a here-document, a template, or a line that goes on."""
_TAG = re.compile(r"[@\\][a-z]\w|:\w[\w ]{0,40}:|\*{0,2}\w{1,40}(?: ?\([^()\n]{1,80}\))? ?:[ \t]\S")
"""The beginning of what a comment says on a parameter, a result or the like."""
_OF_NEXT = re.compile(r"///|//!|/\*[*!]|#:")
"""The beginning of a comment that is about the line below it, also in a function."""
_MEMBER = re.compile(
    r"(?!(?:break|continue|else|for|from|if|import|package|pass|raise|return|try|use|using|yield)\b)"
    r"(?:#define[ \t]{1,9})?(?:[\w.$<>\[\],*&?@-]{1,60}[ \t]{1,9}){0,4}[\w.$\"'\[\]-]{1,60}\??[ \t]{0,40}"
    r"(?:[:=][^\n]*|[,;]?)\Z"
)
"""A field, constant or the like."""
_HAS_MEMBERS = re.compile(r"(?:\w{1,20} ){0,4}(?:class|struct|enum|interface|record|message|trait)\b|[^(]*\Z")
_CLOSING = re.compile(
    r"[)\]}]|\{\Z|where\b|\$\w{0,20}\$|(?i:(?:end|as|is|returns|language)\b|(?:begin|declare|exception|var)\Z)"
)
"""What may stand as far left as the definition that it belongs to."""
_FREE = re.compile(
    rf"#[ \t]*(?:{_DIRECTIVE})\b|(?!(?:try|except|else|finally):)\w{{1,40}}(?: \w{{0,9}}slots)?:\Z"
)
"""What may stand further left than what is around it: a directive or a label. So may a comment."""
_CODE = re.compile(
    rf"\A#(?:{_DIRECTIVE})\b"
    r"|\A(?:[)\]}]|(?:begin|break|else|end|from|import|include|package|raise|require|return|try|use|using)\b[^.]*\Z)"
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
    if _LIKELY.search(text) is None or _OTHER.search(_IN_QUOTES.sub("", text)) is not None:
        return False
    if _SHELL.match(text):
        return True
    lines = [line for line in _lines(text) if line.kind == "code"]
    code = [line.words for line in lines if _CODE.search(line.words)]
    if len(code) < max(_FEWEST_LINES, _SHARE_OF_CODE * len(lines)):
        return False
    has_signs = 10 * sum(re.search(r"[(={]", words) is not None for words in code) > len(lines)
    return (has_signs and 2 * sum(words[-1] in ";{}" for words in code) > len(lines)) or any(
        (below.indent > line.indent or below.words == "{") and _DEFINITION.match(line.words)
        for line, below in pairwise(lines)
    )


def _lines(text: str) -> Iterator[_Line]:
    region, opened = "", None
    """The end of the comment or text of several lines that is open, and the line that opens it."""
    read = read_lines(text)
    ends = {"", "`", '"""', "'''", *(line.words.rstrip(";") for line in read)}
    for start, words, indent, after_blank, _ in read:
        is_comment = opened.kind == "comment" if opened else _COMMENT.match(words) is not None
        line = _Line(start, words, indent, "comment" if is_comment else "code", after_blank)
        if opened is not None:
            line = line if is_comment else line._replace(indent=max(indent, opened.indent))
            opened = None if region in words else opened
        elif is_comment and (match := _LONG_COMMENT.match(words)):
            region, opened = match[1] or "*/", line
        elif not is_comment and (match := _TEXT.search(words)):
            end = match[match.lastindex] if match.lastindex else ""
            if end in ends and (not end or words.count(end) % 2):
                region, opened = end, line
        yield line


def _indents(lines: Sequence[_Line]) -> list[int]:
    """The indent of each line, at least that of the code below one that may stand further left than that."""
    indents, below = list[int](), 0
    for line in reversed(lines):
        is_free = line.kind == "comment" or _FREE.match(line.words) is not None
        indents.append(max(line.indent, below) if is_free else line.indent)
        below = below if is_free else line.indent
    return indents[::-1]


def source_blocks(text: str) -> Iterator[tuple[BlockStart | None, int, tuple[str, ...]]]:
    """Yield the start of each block of source code, or None, a place, and the definitions above it.

    They are the outermost first. The comment in front of a definition, and its docstring, are below its name.
    """
    lines = list(_lines(text))
    indents = _indents(lines)
    around: list[tuple[int, str]] = []  # indents and titles of the definitions around
    opened: tuple[str, ...] | None = None
    """What is above the block of code that is being read; None if none is."""
    body: tuple[str, ...] = ()  # what is above its next lines
    is_named = False  # whether a docstring goes on with the block that a definition begins
    number = 0
    while number < len(lines):
        line = lines[number]
        while around and around[-1][0] >= indents[number] + bool(_CLOSING.match(line.words)):
            around.pop()
        path = tuple(title for _, title in around)[-DEEPEST:]
        if line.kind == "comment":
            end = number + 1
            while end < len(lines) and lines[end].kind == "comment":
                words = lines[end].words
                if lines[end].after_blank and _COMMENT.match(words) and words[0] != "*":
                    break
                end += 1
            is_of_next = _HAS_MEMBERS.match(around[-1][1] if around else "") or _OF_NEXT.match(line.words)
            title = _title_below(lines, end, line.indent, is_of_next is not None)
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
        elif around and around[-1][0] == indents[number] and line.words.startswith(("}", "end")):
            around.pop()
        number = end


def _title_below(lines: Sequence[_Line], number: int, indent: int, is_of_next: bool) -> str:
    """The title of what is defined right below a comment, also behind its attributes; "" without one.

    is_of_next: whether it may be a field or the like; what is above several of them is of none.
    """
    for place in range(number, min(number + _LINES_OF_TITLE, len(lines))):
        line = lines[place]
        is_apart = line.after_blank and (not indent or place > number or lines[place - 1].words[-2:] != "*/")
        if place > number and (line.indent > indent or line.words[0] in ")]>"):
            continue  # of an attribute
        if is_apart or line.kind == "comment" or line.indent != indent:
            return ""
        if _ATTRIBUTE.match(line.words) is None:
            below = lines[place + 1 : place + 2]
            is_one = all(one.after_blank or one.kind == "comment" or one.indent != indent for one in below)
            is_named = is_of_next and ((is_one and _MEMBER.match(line.words)) or _SIGNATURE.match(line.words))
            return _definition(lines, place)[0] or (_cut(line.words) if is_named else "")
    return ""


def _definition(lines: Sequence[_Line], number: int) -> tuple[str, int]:
    """The words of a definition, "" if a line begins none, and the number behind its last line.

    Its head may take several lines; its brace, or what a constructor begins with, may stand below it.
    """
    line, words, end = lines[number], "", number
    is_table = line.words[:6].lower() == "create"
    while end < min(len(lines), number + _LINES_OF_TITLE):
        words, end = f"{words} {lines[end].words}".strip(), end + 1
        if is_table or words.count("(") <= words.count(")") or words.endswith((") {", "> {", "){", ">{")):
            break
    else:
        words, end = line.words, number + 1
    below = lines[end] if end < len(lines) else line
    begins = below.words == "{" if below.indent == line.indent else below.words[0] == ":"
    is_open = words[-1] == ")" and begins
    if _DEFINITION.match(line.words) or _DEFINITION.match(words + " {" * is_open):
        return _cut(words), end
    return "", number + 1


def _cut(words: str) -> str:
    return words[:_LONGEST_TITLE].rstrip(" \t{:;(,")


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
