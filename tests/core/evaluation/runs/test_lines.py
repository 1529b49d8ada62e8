"""JSON Lines files that an interrupted program can continue."""

from pathlib import Path

from precise_rag.evaluation.runs.lines import append_line, read_lines


def test_an_incomplete_last_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    assert read_lines(path) == []
    with path.open("a", encoding="utf-8") as file:
        append_line(file, {"a": "ü"})
        file.write('{"b": 2')
    assert read_lines(path) == [{"a": "ü"}]
    with path.open("a", encoding="utf-8") as file:
        append_line(file, {"b": 2})
    assert read_lines(path) == [{"a": "ü"}, {"b": 2}]
