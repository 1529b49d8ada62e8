"""Compare the tree with the table `tool.size` of pyproject.toml: lines, files of the core, and extras."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MOST = SETTINGS["tool"]["size"]


def lines(pattern: str) -> int:
    """How many lines the files of a pattern have together."""
    return sum(file.read_bytes().count(b"\n") for file in ROOT.glob(pattern))


now = {pattern: lines(pattern) for pattern in MOST if "*" in pattern}
now["files of the core"] = len(list((ROOT / "core" / "precise_rag").rglob("*.py")))
now["extras"] = len(SETTINGS["project"]["optional-dependencies"])
over = [f"{name} has {size:,}, at most {MOST[name]:,}" for name, size in now.items() if size > MOST[name]]
raise SystemExit("\n".join(over) or None)
