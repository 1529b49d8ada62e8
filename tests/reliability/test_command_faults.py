"""The command on faults of files, folders and disks: one line says what is wrong, and nothing is lost."""

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
from typing import Any

import pytest

from precise_rag.cli import ask, main, segment
from precise_rag.index import load_index
from support.commands import ENCODER, LAMP, Result, folder, full, one_line
from support.faults import failing, no_space, not_allowed


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path under a folder with the bytes of regular files; the lock of an index is left out."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
        if not path.name.startswith("lock")
    }


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def broken(path: Path) -> None:
    path.symlink_to("nowhere/at/all")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def under_a_file(path: Path) -> None:
    path.parent.joinpath("file").touch()
    path.symlink_to("file/x")


def not_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00\xd8")


def nul(path: Path) -> None:
    path.write_bytes(b"a\0b")


def deep(path: Path) -> None:
    path.write_text("[" * 50_000)


READ = (pipe, endless, full, broken, loop, folder, under_a_file, not_text, nul, deep)


COMMANDS: dict[str, list[str]] = {
    "segment": ["segment", "{bad}.jsonl"],
    "index": ["index", "{bad}.jsonl", "--out", "new"],
    "demo": ["demo", "{bad}.jsonl"],
    "train": ["train", "{bad}.jsonl", "--out", "model"],
    "ask index": ["ask", "{bad}", "Who?"],
    "ask prices": ["ask", "saved", "Who?", "--prices", "{bad}.toml"],
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", COMMANDS)
def test_any_fault_of_an_input_ends_in_one_line(
    name: str, run: Callable[..., Result], docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "train":
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    assert run("index", "docs", "--out", "saved")[0] == 0
    saved = tree(tmp_path / "saved")
    for number, make in enumerate(READ):
        bad = f"bad{number}"
        command = [part.format(bad=bad) for part in COMMANDS[name]]
        make(tmp_path / next(part for part in command if part.startswith(bad)))
        message = one_line(run(*command))
        assert bad in message, (name, make)
        assert not (tmp_path / "new").exists()
        assert not (tmp_path / "model").exists()
        assert tree(tmp_path / "saved") == saved


WRITE = (pipe, endless, full, loop, folder, under_a_file, broken)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("make", WRITE)
def test_any_fault_of_an_output_ends_in_one_line_before_any_work(
    make: Callable[[Path], None],
    run: Callable[..., Result],
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("index", "docs", "--out", "saved")[0] == 0
    make(tmp_path / "bad.html")
    make(tmp_path / "bad")
    before = tree(tmp_path)
    monkeypatch.setattr(ask.PreciseRAG, "answer", None)
    assert "bad.html cannot be written" in one_line(run("ask", "saved", "Who?", "--trace", "bad.html"))
    assert tree(tmp_path) == before
    if make is not folder:
        for command in (("index", "docs", "--out", "bad"), ("index", "docs", "--out", "bad/index")):
            one_line(run(*command))
            assert tree(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_every_bad_file_is_named_and_the_others_are_indexed(
    run: Callable[..., Result], docs: Path, tmp_path: Path
) -> None:
    bad = (pipe, endless, broken, loop, not_text, nul)
    for make in bad:
        make(docs / f"{make.__name__}.txt")
    code, out, err = run("index", docs, "--out", tmp_path / "index", "--json")
    assert code == 1
    assert json.loads(out)["documents"] == 2
    assert len(json.loads(out)["unreadable"]) == len(bad)
    assert err.count("\n") == len(bad)
    assert all(f"/{make.__name__}.txt: " in err for make in bad)
    assert load_index(tmp_path / "index", ENCODER).document_ids == ("lamp.txt", "sub/otter.txt")
    code, out, err = run("segment", docs, "--json")
    assert code == 1
    assert {json.loads(line)["doc_id"] for line in out.splitlines()} == {"lamp.txt", "sub/otter.txt"}
    assert err.count("\n") == len(bad)


@pytest.fixture
def ordinary_user() -> Iterator[Path]:
    """A folder of a user who is not root; the test runs as that user."""
    if not hasattr(os, "seteuid"):
        pytest.skip("needs users")
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    if root:
        shutil.chown(folder, 65534)
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize("closed", ["sub", "sub/otter.txt"])
def test_pruning_keeps_what_cannot_be_read(
    closed: str, run: Callable[..., Result], ordinary_user: Path
) -> None:
    docs, out = ordinary_user / "docs", ordinary_user / "index"
    (docs / "sub").mkdir(parents=True)
    for name in ("lamp.txt", "road.txt", "sub/otter.txt"):
        (docs / name).write_text(f"A page about {name}. It is short.")
    assert run("index", docs, "--out", out)[0] == 0
    (docs / "road.txt").unlink()
    (docs / closed).chmod(0)
    code, shown, err = run("index", docs, "--out", out, "--prune", "--json")
    assert code == 1
    assert json.loads(shown)["removed_documents"] == ["road.txt"]
    assert f"{closed}: cannot be read (Permission denied)" in err
    assert "1 of the index's documents, such as" in err
    assert "may be in what could not be read, so they stay" in err
    assert set(load_index(out, ENCODER).document_ids) == {"lamp.txt", "sub/otter.txt"}
    (docs / closed).chmod(0o700)
    code, shown, _ = run("index", docs, "--out", out, "--prune", "--json")
    assert (code, json.loads(shown)["removed_documents"]) == (0, [])


def test_places_that_may_not_be_written_or_read(run: Callable[..., Result], ordinary_user: Path) -> None:
    docs, out, closed = (ordinary_user / name for name in ("docs", "index", "closed"))
    docs.mkdir()
    (docs / "lamp.txt").write_text(LAMP)
    assert run("index", docs, "--out", out)[0] == 0
    before = tree(out)
    closed.mkdir()
    closed.chmod(0o500)
    writing: tuple[tuple[object, ...], ...] = (
        ("index", docs, "--out", closed),
        ("index", docs, "--out", closed / "index"),
        ("ask", out, "Who?", "--trace", closed / "a.json"),
    )
    for command in writing:
        one_line(run(*command))
    (docs / "lamp.txt").write_text(LAMP + " More.")
    out.chmod(0o500)
    one_line(run("index", docs, "--out", out))
    out.chmod(0o700)
    assert tree(out) == before
    (docs / "lamp.txt").chmod(0)
    reading: tuple[tuple[object, ...], ...] = (
        ("segment", docs),
        ("index", docs, "--out", ordinary_user / "new"),
        ("demo", docs),
    )
    for command in reading:
        assert "Permission denied" in one_line(run(*command))
    out.chmod(0)
    one_line(run("ask", out, "Who?"))


@pytest.mark.parametrize("error", [no_space, not_allowed, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("first", [True, False], ids=["first", "update"])
def test_a_fault_at_any_file_operation_of_index(
    first: bool,
    error: Callable[[], BaseException],
    run: Callable[..., Result],
    docs: Path,
    tmp_path: Path,
) -> None:
    """The index is the old or the new one, and the next run works."""
    out, old = tmp_path / "index", tmp_path / "old"
    assert run("index", docs, "--out", old)[0] == 0
    (docs / "new.txt").write_text("Herons wait in reeds.")
    names = {"lamp.txt", "sub/otter.txt"}
    at = 1
    while True:
        shutil.rmtree(out, ignore_errors=True)
        if not first:
            shutil.copytree(old, out)
        with failing(at, error) as called:
            code, _, err = run("index", docs, "--out", out)
        if len(called) < at:
            break
        assert code in (0, 1, 130)
        assert "Traceback" not in err
        assert "fault of precise-rag" not in err
        if (out / "manifest.json").exists():
            found = set(load_index(out, ENCODER).document_ids)
            assert found <= names | {"new.txt"}
            assert first or found >= names
        code, _, err = run("index", docs, "--out", out)
        assert code == 0, (at, err)
        index = load_index(out, ENCODER)
        assert set(index.document_ids) == names | {"new.txt"}
        index.save(out)  # the next save clears up what an interrupted one left
        assert len(list(out.glob("data-*"))) == 1
        at += 23
    assert at > 20


@pytest.mark.parametrize("command", ["segment", "ask"])
def test_a_fault_at_any_file_operation_of_other_commands(
    command: str, run: Callable[..., Result], docs: Path, tmp_path: Path
) -> None:
    assert run("index", docs, "--out", tmp_path / "index")[0] == 0
    page, at = tmp_path / "page.html", 1
    page.write_text("old")
    args: dict[str, tuple[object, ...]] = {
        "segment": ("segment", docs),
        "ask": ("ask", tmp_path / "index", "Who keeps the lamp?", "--trace", page),
    }
    while True:
        page.write_text("old")
        with failing(at, not_allowed) as called:
            code, _, err = run(*args[command])
        if len(called) < at:
            break
        assert code in (0, 1)
        assert err.count("\n") >= code
        assert "Traceback" not in err
        assert "fault of precise-rag" not in err, err
        assert code == 0 or page.read_text() == "old"
        assert [p.name for p in tmp_path.glob(".*")] == []
        at += 5
    assert at > 5


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MemoryError(), 1, "not enough memory"),
        (RecursionError("deep"), 1, "RecursionError: deep"),
        (UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates"), 1, "UnicodeEncodeError"),
        (KeyError("x\x1b]0;y\x07"), 1, r"KeyError: 'x\x1b]0;y\x07'"),
        (OSError(errno.EIO, "Input/output error", "a\x1bb"), 1, r"a\x1bb: Input/output error"),
        (OSError("odd"), 1, "odd"),
        (type("PanicException", (BaseException,), {})("in Rust"), 1, "PanicException: in Rust"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_whatever_is_raised_ends_in_one_line(
    error: BaseException,
    code: int,
    message: str,
    run: Callable[..., Result],
    docs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(segment, "iterate_given", fail)
    found, out, err = run("segment", docs)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == bool(message)


def test_an_empty_path_is_not_this_folder(run: Callable[..., Result], docs: Path) -> None:
    for command in (("index", ""), ("index", docs, "--out", ""), ("ask", "", "Who?"), ("segment", "a\0")):
        with pytest.raises(SystemExit, match="2"):
            run(*command)


def start(*args: object, **options: Any) -> "subprocess.Popen[str]":
    script = "import sys; from precise_rag.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, *map(str, args)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_run_leaves_an_index_that_the_next_run_takes(
    run: Callable[..., Result], docs: Path, tmp_path: Path
) -> None:
    """Each run of `index` is killed at a random moment, every tenth within a first build."""
    choose, out, killed = random.Random(0), tmp_path / "index", 0
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
        killed += os.waitpid(child, 0)[1] == signal.SIGKILL
        if (out / "manifest.json").exists():
            assert "lamp.txt" in load_index(out, ENCODER).document_ids
        if number % 7 == 0:
            code, _, err = run("index", docs, "--out", out, "--prune")
            assert code == 0, err
            assert len(list(out.glob("data-*"))) == 1
    assert run("index", docs, "--out", out, "--prune")[0] == 0
