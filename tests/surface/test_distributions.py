"""The thin distributions fit the version and the extras that they ask for, and their READMEs run."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import precise_rag

ROOT = Path(__file__).parents[2]
FOLDERS = sorted((ROOT / "distributions").iterdir())
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_it_asks_for_exists(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == folder.name
    assert project["requires-python"] == PYPROJECT["requires-python"]
    (needed,) = project["dependencies"]
    requirement = Requirement(needed)
    assert requirement.name == "precise-rag"
    assert requirement.extras <= PYPROJECT["optional-dependencies"].keys()
    assert precise_rag.__version__ in requirement.specifier
    assert f"{precise_rag.__version__.split('.')[0]}.99" not in requirement.specifier


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_readme_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llama_index.core" if "llama" in folder.name else "langchain_core")
    monkeypatch.syspath_prepend(folder)
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.DOTALL)
    exec(compile(code, folder.name, "exec"), {})
    assert "__exit__" in capsys.readouterr().out
