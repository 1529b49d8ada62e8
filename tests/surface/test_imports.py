"""Only a few named files of the core touch a framework, and only when they are used."""

import ast
from pathlib import Path

import precise_rag

CORE = Path(precise_rag.__file__).parent
FRAMEWORKS = ("llama_index", "langchain")
WRAPPERS = {
    "encoders/framework.py",
    "llm/framework.py",
    "llm/structured.py",
    "rerank/framework.py",
    "evaluation/splitters.py",
}


def touches_a_framework(file: Path) -> bool:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("require", "import_module"):
            names = [str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant)]
        else:
            continue
        if any(name.startswith(FRAMEWORKS) for name in names):
            return True
    return False


def test_the_frameworks_are_touched_in_the_named_files_alone():
    found = {f.relative_to(CORE).as_posix() for f in CORE.rglob("*.py") if touches_a_framework(f)}
    assert found
    assert found <= WRAPPERS
