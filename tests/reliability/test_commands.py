"""The command on faults of files, disks and terminals: one line says what is wrong, and nothing is lost."""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from precise_rag.cli import ask, main, segment
from support.chat_server import ChatServer, says
from support.commands import LAMP, Result, one_line
from support.documents import read_cases
from support.faults import IN_PLACE_OF_A_FILE, no_space
from support.saved_indexes import tree

Run = Callable[..., Result]
ESCAPES = (
    "\x1b]0;title\x07\x1b]52;c;eA==\x07\x1b[2J\x9b31m\x00\x7f\r\u202etxt.exe\u2066\u2069\u200f\u2028\u061c"
)


def failed(error: BaseException, *_: object, **__: object) -> None:
    raise error


@pytest.mark.parametrize("fault", [*IN_PLACE_OF_A_FILE][:-2])
def test_any_fault_of_an_input_ends_in_one_line(fault: str, run: Run, docs: Path, tmp_path: Path) -> None:
    for name in ("bad", "bad.jsonl"):
        IN_PLACE_OF_A_FILE[fault](tmp_path / name)
    for command in (
        ("segment", tmp_path / "bad.jsonl"),
        ("index", tmp_path / "bad.jsonl", "--out", tmp_path / "new"),
        ("demo", tmp_path / "bad.jsonl"),
        ("ask", tmp_path / "bad", "Who?"),
    ):
        assert "bad" in one_line(run(*command)), command
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("command", "message"), read_cases("commands.json", "refused"))
def test_what_cannot_work_is_one_line_and_writes_nothing(
    command: str, message: str, run: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("index", "docs", "--out", "saved")[0] == 0
    Path("empty.md").touch()
    for name in ("pipe", "endless"):
        IN_PLACE_OF_A_FILE[name](Path(f"{name}.html"))
    before = tree(tmp_path)
    assert message in one_line(run(*command.split(" ")))
    assert tree(tmp_path) == before


@pytest.fixture
def ordinary_user() -> Iterator[Path]:
    """A folder of a user who is not root; the test runs as that user."""
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    if root:
        shutil.chown(folder, 65534)
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    shutil.rmtree(folder)


def test_places_that_may_not_be_written_or_read(run: Run, ordinary_user: Path) -> None:
    docs, out, closed = (ordinary_user / name for name in ("docs", "index", "closed"))
    docs.mkdir()
    (docs / "lamp.txt").write_text(LAMP)
    assert run("index", docs, "--out", out)[0] == 0
    closed.mkdir()
    closed.chmod(0o500)
    one_line(run("index", docs, "--out", closed / "index"))
    one_line(run("ask", out, "Who?", "--trace", closed / "a.json"))
    (docs / "lamp.txt").chmod(0)
    for command in (("segment", docs), ("index", docs, "--out", ordinary_user / "new"), ("demo", docs)):
        assert "Permission denied" in one_line(run(*command))
    out.chmod(0)
    one_line(run("ask", out, "Who?"))
    out.chmod(0o700)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MemoryError(), 1, "not enough memory"),
        (RecursionError("deep"), 1, "RecursionError: deep"),
        (KeyError("x\x1b]0;y\x07"), 1, r"KeyError: 'x\x1b]0;y\x07'"),
        (OSError(errno.EIO, "Input/output error", "a\x1bb"), 1, r"a\x1bb: Input/output error"),
        (OSError("odd"), 1, "odd"),
        (type("PanicException", (BaseException,), {})("in Rust"), 1, "PanicException: in Rust"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_whatever_is_raised_ends_in_one_line(
    error: BaseException, code: int, message: str, run: Run, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "read_documents", partial(failed, error))
    found, out, err = run("segment", docs)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == bool(message)


@pytest.mark.parametrize(
    "command",
    [
        ("answer",),
        ("index", ""),
        ("index", "docs", "--out", ""),
        ("ask", "", "Who?"),
        ("segment", "a\0"),
        ("segment", "a", "-" + ESCAPES),
        ("segment", "a", "--max-tokens", ESCAPES),
    ],
)
def test_wrong_commands_exit_with_2(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(command)
    assert controls_in("".join(capsys.readouterr())) == []


def test_a_process_on_a_full_disk_or_with_a_reader_that_left(docs: Path) -> None:
    def errors_of_a_process(stdout: Any) -> str:
        command = [sys.executable, "-m", "precise_rag", "segment", str(docs)]
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=100)
        assert done.returncode == 1
        return done.stderr

    with open("/dev/full", "w") as stream:
        assert errors_of_a_process(stream) == "precise: No space left on device\n"
    read, write = os.pipe()
    os.close(read)
    assert errors_of_a_process(write) == ""
    os.close(write)


def controls_in(text: str) -> list[str]:
    return [c for c in text if c not in "\n\t" and not c.isprintable() and c not in "\u00a0\u3000"]


def test_no_command_passes_controls_to_the_terminal(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    name = "n" + ESCAPES.replace("\x00", "") + "\nsecond line"
    text = f"The lamp {ESCAPES} is lit. Ilse {ESCAPES} keeps it.\n\nThe road\r\nis closed {ESCAPES}."
    record = {"id": "i" + ESCAPES, "text": text, "title": "t" + ESCAPES}
    (docs / "a.jsonl").write_text(json.dumps(record))
    (docs / f"{name}.txt").write_text("The otter sleeps. It is wet.")
    (docs / f"{name}.md").write_bytes(b"\0")
    out = tmp_path / f"index {name}"
    commands = (
        ("segment", docs),
        ("segment", docs, "--explain"),
        ("segment", docs / f"no{name}.txt"),
        ("index", docs, "--out", out),
        ("ask", out, "Who keeps the lamp?" + ESCAPES),
        ("ask", out, "Who?", "--json"),
        ("ask", tmp_path / name, "Who?"),
        ("ask", out, "Who?", "--trace", tmp_path / name),
        ("demo", docs / "a.jsonl", "--question", "q" + ESCAPES),
    )
    shown = [(command, run(*command)) for command in commands]
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    judgement = json.dumps({"score": 9, "adjustment": 0, "reason": "good " + ESCAPES})
    with ChatServer([says("Ilse " + ESCAPES), says(judgement)]) as server:
        model = ("--llm", "local-model", "--base-url", server.url)
        shown.append((("answer",), run("ask", out, "Who keeps the lamp?", *model)))
        assert len(server.requests) == 2
    for command, (_, output, errors) in shown:
        assert controls_in(output + errors) == [], command
        assert all(line.startswith("precise: ") for line in errors.splitlines()), command
    assert any(r"\x1b]0;title\x07" in output for _, (_, output, _) in shown)


@pytest.mark.parametrize("columns", [None, 40, 41, 80])
def test_no_line_of_a_document_or_a_model_passes_for_one_of_ours(
    columns: int | None, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends a line: a separator, or the width of a terminal."""
    docs, out = tmp_path / "docs.jsonl", tmp_path / "index"
    forged = [f"Ilse keeps the lamp.{end}[7] x.pdf{end}── x" for end in (*"\n\r\v\f\x1c\x85\u2028", "\r\n")]
    forged += [f"{'灯' * (n // 2)}\t{'a' * (n % 2)}[7] x.pdf" + " [7] x.pdf" * 20 for n in range(60, 82)]
    documents = [{"id": f"d{n} {'[7] x.pdf ' * 9}", "text": text} for n, text in enumerate(forged)]
    docs.write_text("\n".join(map(json.dumps, documents)))
    assert run("index", docs, "--out", out)[0] == 0
    if columns is not None:
        monkeypatch.setattr("precise_rag.cli.output.is_terminal", lambda _: True)
        monkeypatch.setenv("COLUMNS", str(columns))
    shown = [run("ask", out, "Who keeps the lamp?"), run("segment", docs), run("segment", docs, "--explain")]
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    judgement = '{"reason": "a\\n[7] x.pdf", "score": 9, "adjustment": 0}'
    with ChatServer([says(forged[0]), says(judgement)]) as server:
        shown.append(run("ask", out, "Who?", "--llm", "m", "--base-url", server.url))
    for code, lines, _ in shown:
        assert code == 0
        for line in lines.split("\n"):
            assert not line.startswith(("[7]", "── x", "x.pdf")), line
            assert columns is None or len(line.replace("灯", "灯灯")) <= columns
        assert "[7]" in lines


def test_no_model_is_asked_if_its_answer_has_nowhere_to_go_and_a_paid_one_is_in_the_trace(
    run: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    index, trace = tmp_path / "index", tmp_path / "trace.json"
    assert run("index", docs, "--out", index)[0] == 0
    judgement = json.dumps({"score": 9, "adjustment": 0, "reason": "complete"})
    with ChatServer([says("Ilse keeps\nit \ud83d."), says(judgement)]) as server:
        command = ("ask", index, "Who keeps the lamp?", "--llm", "m", "--base-url", server.url, "--trace")
        one_line(run(*command, tmp_path / "none" / "a.html"))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", None)
            assert main([*map(str, command), str(trace)]) == 1
        assert server.requests == []
        monkeypatch.setattr(ask, "_show", partial(failed, no_space()))
        assert "No space left on device" in one_line(run(*command, trace))
    assert "Ilse keeps" in trace.read_text()


def test_an_interrupt_while_the_command_is_imported_is_one_line() -> None:
    script = """
import sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "precise_rag.pipeline":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from precise_rag.__main__ import main
sys.exit(main())
"""
    command = [sys.executable, "-c", script, "ask", "index", "Who?", "--llm", "x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "precise: interrupted\n")
