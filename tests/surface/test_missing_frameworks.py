"""Without its framework, an adapter names the extra that installs it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("adapter", "framework", "extra"),
    [
        ("llamaindex_precise", "llama_index", "llamaindex"),
        ("langchain_precise", "langchain_core", "langchain"),
    ],
)
def test_the_extra_is_named(adapter: str, framework: str, extra: str) -> None:
    code = (
        "import sys, importlib.abc\n"
        "class Missing(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] == {framework!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        f"import {adapter}"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert f"pip install 'precise-rag[{extra}]'" in run.stderr.splitlines()[-1]
