"""The command on faults of files, disks and terminals: one line says what is wrong, and nothing is lost."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from precise_rag.cli import ask, main, segment
from precise_rag.index import load_index
from support.chat_server import ChatServer, says
from support.commands import ENCODER, LAMP, Result, one_line
from support.faults import failing, no_space, not_allowed

Run = Callable[..., Result]

ESCAPES = (
    "\x1b]0;title\x07\x1b]52;c;eA==\x07\x1b[2J\x9b31m\x00\x7f\r\u202etxt.exe\u2066\u2069\u200f\u2028\u061c"
)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path under a folder with the bytes of regular files; the lock of an index is left out."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
        if not path.name.startswith("lock")
    }


FAULTS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "broken": lambda path: path.symlink_to("nowhere/at/all"),
    "loop": lambda path: path.symlink_to(path.name),
    "folder": Path.mkdir,
    "not text": lambda path: path.write_bytes(b"\xff\xfe\x00\xd8"),
    "deep": lambda path: path.write_text("[" * 50_000),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_any_fault_of_an_input_ends_in_one_line(
    fault: str, run: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FAULTS[fault](tmp_path / "bad.jsonl")
    FAULTS[fault](tmp_path / "bad")
    for command in (
        ["segment", "bad.jsonl"],
        ["index", "bad.jsonl", "--out", "new"],
        ["demo", "bad.jsonl"],
        ["ask", "bad", "Who?"],
    ):
        assert "bad" in one_line(run(*command)), command
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["segment", "nowhere.txt"], "no such file or folder"),
        (["segment", "empty.md"], "the document is empty"),
        (["segment", "docs/lamp.txt", "--model", "no-such-model"], "no-such-model"),
        (["index", "empty.md", "--out", "new"], "every document is empty"),
        (["ask", "nowhere", "Who?"], "no index"),
        (["ask", "saved", " "], "the query must not be blank"),
    ],
)
def test_bad_input_ends_in_one_line(
    command: list[str],
    message: str,
    run: Run,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.md").touch()
    assert run("index", "docs", "--out", "saved")[0] == 0
    assert message in one_line(run(*command))
    assert not (tmp_path / "new").exists()


def test_any_fault_of_an_output_ends_in_one_line_before_any_work(
    run: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("index", "docs", "--out", "saved")[0] == 0
    monkeypatch.setattr(ask.PreciseRAG, "answer", None)
    for name, make in FAULTS.items():
        if name not in ("not text", "deep", "broken", "loop"):
            make(tmp_path / f"{name}.html")
            before = tree(tmp_path)
            assert "cannot be written" in one_line(run("ask", "saved", "Who?", "--trace", f"{name}.html"))
            assert tree(tmp_path) == before
    (tmp_path / "file").touch()
    for trace in ("none/a.html", "file/a.html", "a.txt"):
        one_line(run("ask", "saved", "Who?", "--trace", trace))
    for out in ("file", "file/index"):
        one_line(run("index", "docs", "--out", out))


def test_every_bad_file_is_named_and_the_others_are_indexed(run: Run, docs: Path, tmp_path: Path) -> None:
    bad = ("pipe", "endless", "broken", "loop", "not text")
    for name in bad:
        FAULTS[name](docs / f"{name}.txt")
    code, out, err = run("index", docs, "--out", tmp_path / "index", "--json")
    assert code == 1
    assert json.loads(out)["documents"] == 2
    assert len(json.loads(out)["unreadable"]) == err.count("\n") == len(bad)
    assert all(f"/{name}.txt: " in err for name in bad)
    code, out, err = run("segment", docs, "--json")
    assert (code, err.count("\n")) == (1, len(bad))
    assert {json.loads(line)["doc_id"] for line in out.splitlines()} == {"lamp.txt", "sub/otter.txt"}


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
    before = tree(out)
    closed.mkdir()
    closed.chmod(0o500)
    one_line(run("index", docs, "--out", closed / "index"))
    one_line(run("ask", out, "Who?", "--trace", closed / "a.json"))
    (docs / "lamp.txt").write_text(LAMP + " More.")
    out.chmod(0o500)
    assert "Permission denied" in one_line(run("index", docs, "--out", out))
    out.chmod(0o700)
    assert tree(out) == before
    (docs / "lamp.txt").chmod(0)
    for command in (("segment", docs), ("index", docs, "--out", ordinary_user / "new"), ("demo", docs)):
        assert "Permission denied" in one_line(run(*command))
    out.chmod(0)
    one_line(run("ask", out, "Who?"))
    out.chmod(0o700)
    closed.chmod(0o700)


@pytest.mark.parametrize("error", [no_space, not_allowed, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("first", [True, False], ids=["first", "update"])
def test_a_fault_at_any_file_operation_of_index(
    first: bool, error: Callable[[], BaseException], run: Run, docs: Path, tmp_path: Path
) -> None:
    """The index is the old or the new one, and the next run works."""
    out, old = tmp_path / "index", tmp_path / "old"
    assert run("index", docs, "--out", old)[0] == 0
    (docs / "new.txt").write_text("Herons wait in reeds.")
    names, at, step, called = {"lamp.txt", "sub/otter.txt"}, 1, 23, [""]
    while len(called) >= at - step:
        shutil.rmtree(out, ignore_errors=True)
        if not first:
            shutil.copytree(old, out)
        with failing(at, error) as called:
            code, _, err = run("index", docs, "--out", out)
        assert code in (0, 1, 130)
        assert "Traceback" not in err
        assert "fault of precise-rag" not in err
        if (out / "manifest.json").exists():
            found = set(load_index(out, ENCODER).document_ids)
            assert found <= names | {"new.txt"}
            assert first or found >= names
        code, _, err = run("index", docs, "--out", out)
        assert code == 0, (at, err)
        assert set(load_index(out, ENCODER).document_ids) == names | {"new.txt"}
        at += step
    assert at > 20


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
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(segment, "read_documents", fail)
    found, out, err = run("segment", docs)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == bool(message)


def test_wrong_command_lines_exit_with_2(run: Run, docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("index", ""), ("index", docs, "--out", ""), ("ask", "", "Who?"), ("segment", "a\0")):
        with pytest.raises(SystemExit, match="2"):
            run(*command)
    for args in (
        ["answer"],
        ["segment", "a", "-" + ESCAPES],
        [ESCAPES],
        ["segment", "a", "--max-tokens", ESCAPES],
    ):
        with pytest.raises(SystemExit, match="2"):
            main(args)
        captured = capsys.readouterr()
        assert controls_in(captured.out + captured.err) == []


def start(*args: object, **options: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "precise_rag", *map(str, args)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload, no-any-return]


def test_a_process_on_a_full_disk_or_with_a_reader_that_left(docs: Path) -> None:
    with open("/dev/full", "w") as stream:
        process = start("segment", docs, stdout=stream)
        assert process.communicate(timeout=100)[1] == "precise: output: No space left on device\n"
    assert process.returncode == 1
    read, write = os.pipe()
    os.close(read)
    process = start("segment", docs, stdout=write)
    os.close(write)
    assert process.communicate(timeout=100)[1] == ""
    assert process.returncode == 1


def test_a_killed_run_leaves_an_index_that_the_next_run_takes(run: Run, docs: Path, tmp_path: Path) -> None:
    """Each run of `index` is killed at a random moment, every tenth within a first build."""
    choose, out = random.Random(0), tmp_path / "index"
    for number in range(20):
        if number % 10 == 0:
            shutil.rmtree(out, ignore_errors=True)
        (docs / f"{number % 3}.txt").write_text(f"Text {number}. It changes.")
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os._exit(main(["index", str(docs), "--out", str(out), "--prune"]))
        time.sleep(choose.uniform(0, 0.04))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if (out / "manifest.json").exists():
            assert "lamp.txt" in load_index(out, ENCODER).document_ids
        if number % 7 == 0:
            code, _, err = run("index", docs, "--out", out, "--prune")
            assert code == 0, err
    assert run("index", docs, "--out", out, "--prune")[0] == 0


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
        ("segment", docs, "--json"),
        ("segment", docs, "--explain"),
        ("segment", docs / f"no{name}.txt"),
        ("index", docs, "--out", out),
        ("index", docs / "a.jsonl", "--out", out, "--json"),
        ("ask", out, "Who keeps the lamp?" + ESCAPES),
        ("ask", out, "Who?", "--json"),
        ("ask", tmp_path / name, "Who?"),
        ("ask", out, "Who?", "--trace", tmp_path / name),
        ("demo", docs / "a.jsonl"),
        ("demo", docs / "a.jsonl", "--question", "q" + ESCAPES, "--json"),
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


def test_no_model_is_asked_if_its_answer_has_nowhere_to_go_and_a_paid_one_is_in_the_trace(
    run: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    assert run("index", docs, "--out", tmp_path / "index")[0] == 0
    judgement = json.dumps({"score": 9, "adjustment": 0, "reason": "complete"})
    with ChatServer([says("Ilse keeps\nit \ud83d."), says(judgement)]) as server:
        index = str(tmp_path / "index")
        command = ["ask", index, "Who keeps the lamp?", "--llm", "local-model", "--base-url", server.url]
        one_line(run(*command, "--trace", tmp_path / "none" / "a.html"))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", None)
            assert main(command) == 1
        assert server.requests == []

        def full(*_: object, **__: object) -> None:
            raise no_space()

        monkeypatch.setattr(ask, "_show", full)
        trace = tmp_path / "trace.json"
        assert "No space left on device" in one_line(run(*command, "--trace", trace))
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
