"""What the command prints: no controls for the terminal, and no paid answer that is lost."""

import errno
import io
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from precise_rag.cli import main
from support.chat_server import ChatServer, says
from support.commands import Result, one_line
from support.faults import no_space

ESCAPES = (
    "\x1b]0;title\x07\x1b]52;c;eA==\x07\x1b[2J\x9b31m\x00\x7f\r\u202etxt.exe\u2066\u2069\u200f\u2028\u061c"
)


def visible_in(text: str) -> list[str]:
    return [c for c in text if c not in "\n\t" and not c.isprintable() and c not in "\u00a0\u3000"]


def test_no_command_passes_controls_to_the_terminal(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    name = "n" + ESCAPES.replace("\x00", "") + "\nsecond line"
    text = f"The lamp {ESCAPES} is lit. Ilse {ESCAPES} keeps it.\n\nThe road\r\nis closed {ESCAPES}."
    record = {"id": "i" + ESCAPES, "text": text, "title": "t" + ESCAPES}
    (docs / "a.jsonl").write_text(json.dumps(record))
    (docs / f"{name}.txt").write_text("The otter sleeps. It is wet.")
    (docs / f"{name}.md").write_bytes(b"\xff")
    out = tmp_path / f"index {name}"
    judgement = json.dumps({"score": 9, "adjustment": 0, "reason": "good " + ESCAPES})
    commands = (
        ("segment", docs),
        ("segment", docs, "--json"),
        ("segment", docs / f"no{name}.txt"),
        ("segment", docs, "--explain"),
        ("index", docs, "--out", out),
        ("index", docs, "--out", out, "--prune"),
        ("index", docs / "a.jsonl", "--out", out, "--json"),
        ("ask", out, "Who keeps the lamp?" + ESCAPES, "--ratio", "0"),
        ("ask", out, "Who?", "--json", "--ratio", "0"),
        ("ask", tmp_path / name, "Who?"),
        ("ask", out, "Who?", "--trace", tmp_path / name),
        ("demo", docs / "a.jsonl"),
        ("demo", docs / "a.jsonl", "--question", "q" + ESCAPES, "--json"),
    )
    shown = [(command, run(*command)) for command in commands]
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    with ChatServer([says("Ilse " + ESCAPES), says(judgement)]) as server:
        model = ("--llm", "local-model", "--base-url", server.url, "--ratio", "0")
        shown.append((("answer",), run("ask", out, "Who keeps the lamp?", *model)))
        assert len(server.requests) == 2
    for command, (_, output, errors) in shown:
        assert visible_in(output + errors) == [], command
        assert all(line.startswith("precise: ") for line in errors.splitlines()), command
    assert any(r"\x1b]0;title\x07" in output for _, (_, output, _) in shown)


def test_a_wrong_command_line_passes_no_controls_either(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["segment", "a", "-" + ESCAPES], [ESCAPES], ["segment", "a", "--max-tokens", ESCAPES]):
        with pytest.raises(SystemExit, match="2"):
            main(command)
        captured = capsys.readouterr()
        assert visible_in(captured.out + captured.err) == []


class Stream(io.TextIOBase):
    """A standard output on a full disk, or whose reader has gone."""

    encoding = "utf-8"  # type: ignore[assignment]

    def __init__(self, error: OSError) -> None:
        self.error = error

    def write(self, text: str) -> int:
        raise self.error

    def fileno(self) -> int:
        raise OSError


@pytest.fixture
def paid(
    run: Callable[..., Result], docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ChatServer, list[str]]]:
    """A server whose answers cost money, and a command that asks it."""
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    assert run("index", docs, "--out", tmp_path / "index")[0] == 0
    judgement = json.dumps({"score": 9, "adjustment": 0, "reason": "complete"})
    with ChatServer([says("Ilse keeps\nit \ud83d."), says(judgement)]) as server:
        index = str(tmp_path / "index")
        model = ["--llm", "local-model", "--base-url", server.url, "--ratio", "0"]
        yield server, ["ask", index, "Who keeps the lamp?", *model]


@pytest.mark.parametrize("trace", ["none/a.html", "folder.html", "a.txt"])
def test_no_model_is_asked_if_the_trace_cannot_be_written(
    trace: str, paid: tuple[ChatServer, list[str]], run: Callable[..., Result], tmp_path: Path
) -> None:
    server, command = paid
    (tmp_path / "folder.html").mkdir()
    one_line(run(*command, "--trace", tmp_path / trace))
    assert server.requests == []


def test_no_model_is_asked_if_output_is_closed(
    paid: tuple[ChatServer, list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, command = paid
    monkeypatch.setattr(sys, "stdout", None)
    assert main(command) == 1
    assert "standard output is closed" in capsys.readouterr().err
    assert server.requests == []


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_answer_is_printed_before_a_trace_fails(
    options: tuple[str, ...],
    paid: tuple[ChatServer, list[str]],
    run: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, command = paid
    trace = tmp_path / "trace.html"
    trace.write_text("old")

    def full(self: Path, data: bytes) -> int:
        raise no_space()

    monkeypatch.setattr(Path, "write_bytes", full)
    result = run(*command, "--trace", trace, *options)
    assert "No space left on device" in one_line(result)
    assert "Ilse keeps" in result[1]
    assert trace.read_text() == "old"


@pytest.mark.parametrize("error", [no_space(), BrokenPipeError(errno.EPIPE, "Broken pipe")])
def test_an_answer_that_output_does_not_take_goes_to_standard_error_and_the_trace(
    error: OSError,
    paid: tuple[ChatServer, list[str]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, command = paid
    trace = tmp_path / "trace.json"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Stream(error))
        assert main([*command, "--trace", str(trace)]) == 1
    err = capsys.readouterr().err
    assert "Answer:\nIlse keeps\nit " in err
    assert "Ilse keeps" in trace.read_text()
    assert ("output: No space left on device" in err) == (error.errno == errno.ENOSPC)


@pytest.mark.parametrize("module", ["precise_rag.cli", "precise_rag.cli.output", "precise_rag.pipeline"])
def test_an_interrupt_while_the_command_is_imported_is_one_line(module: str) -> None:
    script = f"""
import sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from precise_rag.__main__ import main
sys.exit(main())
"""
    command = [sys.executable, "-c", script, "ask", "index", "Who?", "--llm", "x"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "precise: interrupted\n")


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "precise_rag", "--version"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.stdout.startswith("precise-rag ")
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert settings["project"]["scripts"] == {"precise": "precise_rag.__main__:main"}
