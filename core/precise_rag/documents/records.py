"""Records of JSON Lines, JSON and CSV files, and messages of mail, as documents."""

import csv
import email
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.policy import EmailPolicy
from itertools import takewhile
from pathlib import Path
from typing import Any

from precise_rag.checks import without_repeats
from precise_rag.documents.conversion import Converter
from precise_rag.documents.files import Report, decode, decode_as
from precise_rag.errors import InputError
from precise_rag.types import Document

_RESERVED = re.compile(r"source|record|relevance_score|precise.*|\$.*", re.DOTALL)
"""Metadata that say where a text is from and how it is ranked, which a record cannot set."""
_MOST_LEVELS = 100
"""Objects and lists within each other in a record."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,9})?")
"""A cell of a column of numbers; "007" is a code."""
_DELIMITERS, _LINES = ",;\t|", 5
"""What parts cells, and how many lines tell which does."""
_MESSAGE = re.compile(rb"(?m)^From [^\n]*\n")
"""The line before each message of an .mbox file."""
_MOST_READS = 10_000_000
"""Times that lines of a mail are looked at: each once for each part that it may be in."""
_QUOTED = re.compile(rb"(?m)^>(>*From )")
"""A line of a message that would begin another one."""


def each_document(
    parts: Iterable[tuple[int, Any]], read: Callable[[int, Any, str], Document], report: Report, where: str
) -> Iterator[Document]:
    """Yield what `read` makes of each number, part and place, `where`; a bad one does not stop the others."""
    for number, part in parts:
        place = f"{where} {number}"
        try:
            yield read(number, part, place)
        except Exception as error:
            report(unreadable(error, place))


def unreadable(error: Exception, place: str) -> InputError:
    """Return the error of a file or a part that cannot be read, whatever was raised; it names the place."""
    if isinstance(error, InputError) and str(error).startswith(place):
        return error
    return InputError(f"{place}: cannot be read ({error})")


def json_lines_documents(text: str, name: str, file: Path, report: Report) -> Iterator[Document] | None:
    """Return a document for each line of a .jsonl file; None for data, as a log: none has "text"."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    values: Iterator[Any] = each_document(lines, lambda _, one, at: _parse_json(one, at), lambda _: None, "")
    have_text = (isinstance(value, dict) and "text" in value for value in values)
    if not (next(have_text, True) or any(have_text)):
        return None
    return each_document(
        lines, lambda n, line, at: from_record(n, _parse_json(line, at), at, name), report, f"{file}, line"
    )


def json_records(text: str, file: Path) -> list[dict[str, Any]] | None:
    """Return the records of a JSON file; None if it is no list of objects with "text"."""
    records = _parse_json(text, str(file))
    is_list = isinstance(records, list) and all(isinstance(one, dict) and "text" in one for one in records)
    return records if is_list else None


def table_records(text: str, file: Path) -> tuple[list[dict[str, Any]] | None, str]:
    """Return the rows of a CSV file, or None if it has no column "text", and the file as a Markdown table.

    A column of numbers alone has numbers. Lines of one cell above the head of the table are paragraphs.
    """
    delimiter = max(_DELIMITERS, key="\n".join(text.split("\n", _LINES)[:_LINES]).count)
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # of the process: never less, for threads
    try:
        rows = [*csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)]
        if text.count('"') % 2 and "\n" in "".join(rows[-1][-1:]):
            raise csv.Error("a quote is not closed")
    except csv.Error as error:
        raise InputError(f"{file}: not a table of values ({error})") from error
    for row in rows:
        while row and not row[-1].strip():
            row.pop()
    rows = [row for row in rows if row]
    above = [*takewhile(lambda row: len(row) == 1 and row != ["text"], rows)]
    rows = rows[len(above) :]
    head, *filled = rows or [[]]
    if filled and "text" in head:
        if len({*head}) < len(head):
            raise InputError(f"{file}: two columns have the same name; rename one ({', '.join(head)})")
        named = [{key: cell for key, cell in zip(head, row, strict=False) if key and cell} for row in filled]
        numbers = {*head} - {"id", "text"}
        for row in named:
            numbers -= {key for key in row.keys() & numbers if not _NUMBER.fullmatch(row[key])}
        values = ({key: json.loads(row[key]) for key in numbers & row.keys()} for row in named)
        return [{"text": "", **row, **own} for row, own in zip(named, values, strict=True)], text
    if len(head) < 2 or any(len(row) > len(head) for row in rows):
        return None, text
    head, *filled = ([" ".join(cell.split()).replace("|", r"\|") for cell in row] for row in rows)
    table = "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *filled))
    return None, "".join(f"{line}\n\n" for (line,) in above) + table


class _MailPolicy(EmailPolicy):
    """Reads so many characters of a header: the library's own reading takes quadratic time."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        if name.lower().startswith("content-"):
            return super().header_fetch_parse(name, value[:1_000])
        words = " ".join(value[:10_000].split())
        try:
            return str(make_header(decode_header(words)))
        except (LookupError, ValueError, HeaderParseError):
            return words


def mail_documents(
    data: bytes, name: str, file: Path, converter: Converter, report: Report
) -> Iterator[Document]:
    """Return a document for each message of an .eml or .mbox file: its text, without attachments.

    The metadata "title", which models are shown, is the subject, who wrote it, and when.
    """
    is_one = file.suffix.lower() == ".eml"
    messages = [data] if is_one else [_QUOTED.sub(rb"\1", one) for one in _MESSAGE.split(data)[1:]]

    def read(number: int, message: bytes, _: str) -> Document:
        if message.count(b"\n") * message.lower().count(b"boundary=") > _MOST_READS:
            raise InputError("its parts are too many, or too deep in each other")
        parsed: Any = email.message_from_bytes(message, policy=_MailPolicy())
        body = parsed.get_body(("plain", "html"))
        sent = b"" if body is None else body.get_payload(decode=True)
        try:
            text = decode_as(sent, body.get_content_charset("ascii")) if sent else ""
        except (LookupError, ValueError):  # it names no encoding, or a wrong one
            text = decode(sent, file)
        fields = {"subject": "title", "from": "from", "to": "to", "date": "date"}
        headers = {key: str(parsed[field]) for field, key in fields.items() if parsed[field]}
        if body is not None and body.get_content_subtype() == "html":
            text = converter.convert(text.encode("utf-8", "replace"), file.with_suffix(".html"))[0]
        if title := ", ".join(headers[key] for key in ("title", "from", "date") if key in headers):
            headers["title"] = title
        return Document(name if is_one else f"{name}#{number}", text, {"source": name, **headers})

    return each_document(enumerate(messages, start=1), read, report, f"{file}, message")


def _parse_json(text: str, place: str) -> Any:
    """Parse JSON. Raises InputError if it is malformed or nested too deeply, or repeats a key."""
    try:
        value = json.loads(text, object_pairs_hook=without_repeats)
        is_deep = _levels(value) > _MOST_LEVELS
    except RecursionError:
        is_deep = True
    except ValueError as error:
        raise InputError(f"{place}: not valid JSON ({error})") from error
    if is_deep:
        raise InputError(f"{place}: nested more than {_MOST_LEVELS} levels deep")
    return value


def _levels(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_levels, value), default=0) if isinstance(value, list) else 0


def from_record(number: int, record: Any, place: str, name: str) -> Document:
    """Return the document of a record, a mapping; the fields that are not its id or text become metadata.

    number: of the record in the file, its id if it has none. place: file and line for error messages.
    name: of its file, which is the metadata "source". The id is below it: `<name>#<id>`.
    A field with the name of one of ours is kept in the metadata "record", a mapping.
    """
    if not isinstance(record, dict):
        raise InputError(f"{place}: expected a JSON object, got {type(record).__name__}")
    identifier = record.get("id", number)
    if not isinstance(identifier, str | int | float) or isinstance(identifier, bool) or identifier == "":
        raise InputError(f'{place}: "id" must be a filled string or a number, got {identifier!r:.100}')
    text = record.get("text")
    if not isinstance(text, str):
        raise InputError(f'{place}: the record needs a string "text"')
    metadata: dict[str, Any] = {"source": name}
    for key, value in record.items():
        if _RESERVED.fullmatch(key):
            metadata.setdefault("record", {})[key] = value
        elif key not in ("id", "text"):
            metadata[key] = value
    return Document(f"{name}#{identifier}", text, metadata)
