"""JSON Lines files that an interrupted program can continue."""

import json
from pathlib import Path
from typing import Any, TextIO


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a file, [] if it does not exist. An incomplete last line is removed."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    return [json.loads(line) for line in whole.decode("utf-8").split("\n") if line]


def append_line(file: TextIO, line: dict[str, Any]) -> None:
    """Write one line and flush it."""
    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    file.flush()
