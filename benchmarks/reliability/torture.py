"""How often the tests that count their attempts tried to break things; it prints a table if nothing broke.

Runs the tests of each file that counts what it tries or has a test with the marker `torture`, in all folders,
and adds up the counts. It takes hours. With --quick it leaves out the tests with the marker and takes
minutes.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks import record
from benchmarks.tables import table

NAME = "benchmarks.reliability.torture"
TESTS = record.HERE.parent / "tests"
VARIABLE = "PRECISE_FIGURES"
"""As in tests/support/figures.py."""
MARKS = ("from support.figures import", "from support import figures", "mark.torture")


def counting_files() -> list[str]:
    """The files of tests that count what they try, or that have long tests."""
    files = {str(file): file.read_text("utf-8") for file in sorted(TESTS.rglob("test_*.py"))}
    return [file for file, text in files.items() if any(mark in text for mark in MARKS)]


def run_tests(only: str, quick: bool, figures: Path) -> int:
    """Run the tests; they add their counts to a file. Returns the exit code of pytest."""
    chosen = "not torture" if quick else ""
    command = [sys.executable, "-m", "pytest", "-m", chosen, "-k", only, *counting_files()]
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
    parser.add_argument("--quick", action="store_true", help="leave out the tests with the marker torture")
    parser.add_argument("--name", default="torture", help="name of the result (default: %(default)s)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.jsonl"
        figures.touch()
        if code := run_tests(args.only, args.quick, figures):
            return code
        total = added_up(figures)
    rows = table([{"what": what, "times": number} for what, number in sorted(total.items())])
    text = f"# Attempts to break things\n\n{rows}"
    record.save("reliability", args.name, record.made(NAME, args), text, {"rows": dict(total)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
