"""Every optional import names a published extra, and that extra installs what is imported."""

import ast
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import precise_rag

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOLDERS = [Path(precise_rag.__file__).parent, ROOT / "llamaindex_precise", ROOT / "langchain_precise"]


def distributions(extra: str) -> set[str]:
    found: set[str] = set()
    for requirement in EXTRAS[extra]:
        match = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement)
        assert match
        if match[1] == "precise-rag":
            found |= set().union(*(distributions(name) for name in match[2].split(",")))
        else:
            found.add(re.sub(r"[-_.]+", "-", match[1]).lower())
    return found


def optional_imports() -> set[tuple[str, str]]:
    found = set()
    for file in (file for folder in FOLDERS for file in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
                (extra,) = [keyword.value for keyword in node.keywords if keyword.arg == "extra"]
                module = node.args[0]
                if isinstance(module, ast.Constant) and isinstance(extra, ast.Constant):
                    found.add((str(module.value).split(".")[0], str(extra.value)))
    return found


IMPORTS = sorted(optional_imports())


@pytest.mark.parametrize(("module", "extra"), IMPORTS)
def test_the_extra_that_an_error_names_installs_the_module(module, extra):
    assert extra in EXTRAS
    known = packages_distributions().get(module)
    assert not any(re.match(rf"{module}\b", requirement) for requirement in PROJECT["dependencies"]), (
        "it is always installed: import it"
    )
    if known is None:
        pytest.skip(f"{module} is not installed here")
    assert {re.sub(r"[-_.]+", "-", name).lower() for name in known} & distributions(extra)


def test_optional_imports_are_found():
    assert len(IMPORTS) > 10
