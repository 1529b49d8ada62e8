"""Files of JSON lines that survive being interrupted."""

import json
from pathlib import Path
from typing import Any, TextIO


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines written so far; one that was cut short at the end is removed from the file."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    return [json.loads(line) for line in whole.decode("utf-8").split("\n") if line]


def append_line(file: TextIO, line: dict[str, Any]) -> None:
    """Write one line at once."""
    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    file.flush()
