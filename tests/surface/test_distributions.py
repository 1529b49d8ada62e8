"""Every optional import names an extra that installs it; the thin distributions fit, and READMEs run."""

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
DISTRIBUTIONS = sorted((ROOT / "distributions").iterdir())


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


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_what_it_asks_for_exists(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == folder.name
    assert project["requires-python"] == PROJECT["requires-python"]
    (needed,) = project["dependencies"]
    requirement = Requirement(needed)
    assert requirement.name == "precise-rag"
    assert requirement.extras <= PROJECT["optional-dependencies"].keys()
    assert precise_rag.__version__ in requirement.specifier
    assert f"{precise_rag.__version__.split('.')[0]}.99" not in requirement.specifier


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_the_readme_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llama_index.core" if "llama" in folder.name else "langchain_core")
    monkeypatch.syspath_prepend(folder)
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.DOTALL)
    exec(compile(code, folder.name, "exec"), {})
    assert "__exit__" in capsys.readouterr().out
