"""The examples in docstrings run, and their sentences are short enough to be read once."""

import ast
import doctest
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import precise_rag

ROOT = Path(precise_rag.__file__).parent
PACKAGES = ["precise_rag", "llamaindex_precise", "langchain_precise"]
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
MOST_WORDS = 30
MODULES = sorted(
    ".".join(("precise_rag", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for file in ROOT.rglob("*.py")
    if ">>> " in file.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    results = doctest.testmod(import_module(name))
    assert results.attempted
    assert not results.failed


def test_the_example_of_the_testing_package_runs() -> None:
    lines = (import_module("precise_rag.testing").__doc__ or "").splitlines()
    code = "\n".join(line.removeprefix("    ") for line in lines if line.startswith("    "))
    names: dict[str, object] = {}
    exec(code, names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    assert callable(test)
    test()


def public_docstrings(node: Any, name: str) -> Iterator[tuple[str, str]]:
    """The names and docstrings of a module, of its public classes, and of their public methods."""
    yield name, ast.get_docstring(node) or ""
    for inner in node.body:
        if isinstance(inner, DEFINITIONS) and not inner.name.startswith("_"):
            yield from public_docstrings(inner, f"{name}.{inner.name}")


def sentences(docstring: str) -> Iterator[str]:
    """The sentences of the prose, without examples. Parameters, items and rows of tables begin new ones."""
    lines = [line for line in docstring.splitlines() if not line.lstrip().startswith((">>>", "..."))]
    beginning = r"\n\s*\n|\n(?=\s*[\w*`, ]+: |\s*- |.*\S {2,}\S| {4})"
    for paragraph in re.split(beginning, "\n".join(lines)):
        yield from re.split(r"(?<=[.!?])\s+", re.sub(r"`[^`]*`", "name", paragraph))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_sentence_of_a_public_docstring_has_more_than_30_words(package: str) -> None:
    spec = find_spec(package)
    assert spec is not None
    folder = Path(str(spec.origin)).parent
    read = 0
    for file in sorted(folder.rglob("*.py")):
        module = ast.parse(file.read_text("utf-8"))
        for name, docstring in public_docstrings(module, file.relative_to(folder.parent).as_posix()):
            for sentence in sentences(docstring):
                read += 1
                words = sentence.split()
                assert len(words) <= MOST_WORDS, f"{name}: {len(words)} words: {' '.join(words)}"
    assert read > 50


def test_a_long_sentence_is_noticed_and_a_table_of_files_is_none() -> None:
    long = " ".join(["word"] * (MOST_WORDS + 1))
    assert max(len(sentence.split()) for sentence in sentences(f"Title.\n\nx: {long}.")) > MOST_WORDS
    table = "\n".join(f"file{number}.py    what it holds" for number in range(20))
    assert max(len(sentence.split()) for sentence in sentences(f"Files.\n\n{table}")) <= 4
