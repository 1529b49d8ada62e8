"""Every optional import names a published extra, and that extra installs what is imported."""

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import precise_rag

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FOLDERS = [Path(precise_rag.__file__).parent, ROOT / "llamaindex_precise", ROOT / "langchain_precise"]
SOURCES = "\n".join(file.read_text("utf-8") for folder in FOLDERS for file in folder.rglob("*.py"))
IMPORTS = sorted(set(re.findall(r'\brequire\("(\w+)[\w.]*", extra="([\w-]+)"\)', SOURCES)))
"""The modules that are imported by `require`, each with its extra."""


def installed_by(extra: str) -> set[str]:
    """The distributions that an extra names, and those of the extras in it."""
    found: set[str] = set()
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if requirement.name == "precise-rag":
            found = found.union(*map(installed_by, requirement.extras))
        else:
            found.add(canonicalize_name(requirement.name))
    return found


@pytest.mark.parametrize(("module", "extra"), IMPORTS)
def test_the_extra_that_an_error_names_installs_the_module(module, extra):
    always = {Requirement(requirement).name for requirement in PROJECT["dependencies"]}
    assert module not in always, "it is always installed: import it"
    names = packages_distributions().get(module)
    if names is None:
        pytest.skip(f"{module} is not installed here")
    assert set(map(canonicalize_name, names)) & installed_by(extra)


def test_optional_imports_are_found():
    assert len(IMPORTS) > 10
