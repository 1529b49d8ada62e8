"""How often the long tests of reliability tried to break things; it prints a table if nothing broke.

Runs `pytest -m torture tests/reliability` and adds up what its tests counted. It takes hours.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks import record

NAME = "benchmarks.reliability.torture"
TESTS = record.HERE.parent / "tests"
VARIABLE = "PRECISE_FIGURES"
"""As in tests/support/figures.py."""


def run_tests(only: str, figures: Path) -> int:
    """Run the long tests; they add their counts to a file. Returns the exit code of pytest."""
    command = [sys.executable, "-m", "pytest", "-m", "torture", str(TESTS / "reliability"), "-k", only]
    return subprocess.run(command, env={**os.environ, VARIABLE: str(figures)}, check=False).returncode


def added_up(figures: Path) -> Counter[str]:
    """The counts by what was tried."""
    total: Counter[str] = Counter()
    for line in figures.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        total[entry["what"]] += entry["number"]
    return total


def main() -> int:
    """Run the tests, then write the table."""
    parser = record.new_parser(NAME, __doc__ or "", data=False)
    parser.add_argument("--only", metavar="EXPRESSION", default="", help="run tests that match, as pytest -k")
    parser.add_argument("--name", default="torture", help="name of the result (default: %(default)s)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.jsonl"
        figures.touch()
        if code := run_tests(args.only, figures):
            return code
        total = added_up(figures)
    rows = "\n".join(f"| {what} | {number:,} |" for what, number in sorted(total.items()))
    markdown = f"# Attempts to break things\n\n| what | times |\n|---|--:|\n{rows}\n"
    record.save("reliability", args.name, record.made(NAME, args), markdown, {"rows": dict(total)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
