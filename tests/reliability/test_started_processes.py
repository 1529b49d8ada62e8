"""The processes that we start import what is installed, and nothing from where we happen to be."""

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import precise_rag
from precise_rag.documents import conversion, read_documents

NAMES = [
    "markitdown",
    "precise_rag",
    "numpy",
    "json",
    "re",
    "io",
    "warnings",
    "sitecustomize",
    "usercustomize",
]
NAMES += ["pdfplumber", "mammoth", "pandas", "encodings", "importlib", "multiprocessing", "pickle", "startup"]


def write_modules(folder: Path, marker: Path) -> Path:
    """Modules, each of which writes its name to a file when it is imported."""
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write({name!r} + chr(10))\n")
    return folder


def test_the_converter_imports_nothing_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("markitdown")
    marker = tmp_path / "imported"
    here = write_modules(tmp_path / "here", marker)
    (here / "a.html").write_text("<h1>Fares</h1>")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    user = tmp_path / "user" / "lib" / version / "site-packages"
    write_modules(user, marker)
    (user / "own.pth").write_text("import usercustomize\n")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", str(write_modules(tmp_path / "path", marker)))
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    monkeypatch.setenv("PYTHONSTARTUP", str(here / "startup.py"))
    monkeypatch.setenv("PYTHONINSPECT", "1")
    conversion.close_converter()
    assert [document.text for document in read_documents(here / "a.html")] == ["# Fares"]
    assert not marker.exists(), marker.read_text()


def test_the_converter_finds_what_lies_beside_the_package(tmp_path: Path) -> None:
    """As `pip install --target` puts it, with an interpreter that has nothing installed."""
    pytest.importorskip("markitdown")
    target = tmp_path / "target"
    target.mkdir()
    for entry in Path(numpy.__file__).parents[1].iterdir():
        if entry.suffix != ".pth":
            (target / entry.name).symlink_to(entry)
    (target / "precise_rag").unlink(missing_ok=True)
    (target / "precise_rag").symlink_to(Path(precise_rag.__file__).parent)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    (tmp_path / "a.html").write_text("<h1>Fares</h1>")
    code = "import sys; sys.path.append(sys.argv[1]); from precise_rag import read_documents as read; "
    code += "print(next(read(sys.argv[2])).text)"
    python = tmp_path / "bare" / ("Scripts" if os.name == "nt" else "bin") / "python"
    command = [python, "-I", "-c", code, target, tmp_path / "a.html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("# Fares\n", 0), done.stderr
