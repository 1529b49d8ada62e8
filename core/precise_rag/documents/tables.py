"""Tables of values: CSV files, with fields of any length."""

import re
from collections.abc import Iterator
from pathlib import Path

from precise_rag.documents.records import from_record
from precise_rag.errors import InputError
from precise_rag.types import Document

_MOST_COLUMNS = 10_000
_DELIMITERS = ",;\t|"


def table_documents(text: str, name: str, file: Path, own_ids: bool = False) -> Iterator[Document]:
    """The documents of a CSV file, whose first row has the names of the columns.

    With a column "text" each row is a record, as the lines of a .jsonl file are. Otherwise the file is one
    document with a paragraph for each row, such as `city: Oslo; country: Norway`.
    """
    header = text.partition("\n")[0]
    rows = table_rows(text, max(_DELIMITERS, key=header.count), file)
    names = next(rows, [])
    if "text" in names:
        for number, row in enumerate(rows, start=1):
            record = {key: value for key, value in zip(names, row, strict=False) if value}
            if record:
                place = f"{file}, row {number}"
                yield from_record({"text": "", **record}, name, number, place, own_ids)
        return
    paragraphs = (
        "; ".join(f"{key}: {value}" if key else value for key, value in _cells(names, row) if value.strip())
        for row in rows
    )
    yield Document(name, "\n\n".join(filter(None, paragraphs)) or "; ".join(names), {"source": name})


def table_rows(text: str, delimiter: str, file: Path) -> Iterator[list[str]]:
    """The rows of a table as RFC 4180 writes them, in time linear in the text.

    As the standard library's reader, whose longest field is one number for the whole process.
    Raises InputError for a row with too many columns.
    """
    field = re.compile(rf'(?:"((?:[^"]++|"")*+)"?)?+([^{re.escape(delimiter)}\r\n]*+)(\r\n|.?)', re.DOTALL)
    row: list[str] = []
    at, number = 0, 1
    while at < len(text) or row:
        match = field.match(text, at)
        assert match is not None
        quoted, plain, end = match.groups()
        row.append(plain if quoted is None else quoted.replace('""', '"') + plain)
        at = match.end()
        if len(row) > _MOST_COLUMNS:
            raise InputError(f"{file}, row {number}: has more than {_MOST_COLUMNS:,} columns")
        if end != delimiter:
            yield [] if row == [""] and quoted is None else row
            row, number = [], number + 1


def _cells(names: list[str], row: list[str]) -> Iterator[tuple[str, str]]:
    for number, value in enumerate(row):
        yield (names[number].strip() if number < len(names) else ""), " ".join(value.split())
