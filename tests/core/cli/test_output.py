import io
from pathlib import Path

import pytest

from precise_rag import Candidate, GradientSelector
from precise_rag.cli.output import (
    check_writable,
    flush,
    print_json,
    print_selection,
    show,
    warn,
    write_file,
)
from precise_rag.errors import InputError
from precise_rag.redaction import visible, visible_line


def test_the_cut_is_shown_once_with_its_reason(capsys):
    selection = GradientSelector(min_k=1).select(
        Candidate("d", 10 * i, 10 * i + 5, f"text {i}", score, "probability")
        for i, score in enumerate([0.9, 0.8, 0.1, 0.05, 0.04, 0.03])
    )
    print_selection(selection, dropped=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "cut after" in line] == [
        "  ── cut after rank 2: sharp drop: 0.1 is not above 0.3 × 0.8"
    ]
    assert lines[-1].strip() == "… and 2 more dropped, 0 repetitions left out"


UNSAFE = (
    "\x1b]0;title\x07 \x1b[31mred\x9b2J \x1b]52;c;eA==\x07 \u202eevil\u2066x\u200f \u2028 \x00\x7f\r \ud83d"
)


def test_control_characters_are_shown_and_not_obeyed():
    shown = visible(UNSAFE)
    assert shown.isprintable()
    assert shown.startswith(r"\x1b]0;title\x07 \x1b[31mred\x9b2J")
    assert shown.endswith(r"\u202eevil\u2066x\u200f \u2028 \x00\x7f\x0d \ud83d")
    assert visible("Zeile\r\nzwei\tß 🦦 👩‍🚀 می‌خواهم") == "Zeile\nzwei\tß 🦦 👩‍🚀 می‌خواهم"
    assert visible_line("a\nb\tc") == r"a\nb\tc"


def test_every_control_character_is_escaped():
    obeyed = {chr(code) for code in (*range(32), *range(127, 160), 0x61C, 0x200E, 0x200F, 0x2028, 0x2029)}
    obeyed |= {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))} - {"\n", "\t"}
    assert [c for c in obeyed - {"\n", "\t"} if visible(c) == c] == []


def test_output_that_a_stream_cannot_encode_is_escaped(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    show("é ── \ud83d")
    print_json({"é": "\ud83d\u202e\x1b"})
    flush()
    assert raw.getvalue().decode() == '\\xe9 \\u2500\\u2500 \\ud83d\n{"\\u00e9": "\\ud83d\\u202e\\u001b"}\n'


def test_an_error_is_one_line_of_bounded_length(capsys):
    warn("a\nb\x1b" + "x" * 10_000)
    err = capsys.readouterr().err
    assert err.startswith("precise: a\\nb\\x1bxx")
    assert err.count("\n") == 1
    assert len(err) == 2_001


def test_a_file_is_replaced_in_one_step_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.html"
    write_file(path, "old")
    path.chmod(0o640)
    (tmp_path / "link.html").symlink_to(path)
    write_file(tmp_path / "link.html", "new \ud83d")
    assert (tmp_path / "link.html").is_symlink()
    assert path.read_text("utf-8") == "new \\ud83d"
    assert path.stat().st_mode & 0o777 == 0o640

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"a\.html cannot be written: No space left on device"):
        write_file(path, "newer")
    assert path.read_text("utf-8") == "new \\ud83d"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.html", "link.html"]


def test_places_that_cannot_be_written_are_found_before(tmp_path):
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "device.html").symlink_to("/dev/full")
    (tmp_path / "loop.html").symlink_to("loop.html")
    for name in ("folder.html", "file/a.html", "none/a.html", "device.html", "loop.html", "x" * 300, "\0"):
        before = sorted(tmp_path.rglob("*"))
        for attempt in (check_writable, lambda path: write_file(path, "x")):
            with pytest.raises(InputError, match="cannot be written"):
                attempt(tmp_path / name)
        assert sorted(tmp_path.rglob("*")) == before
    check_writable(tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()
