"""The examples in docstrings run."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import precise_rag

ROOT = Path(precise_rag.__file__).parent
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
