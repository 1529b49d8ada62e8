"""The `precise` command; `python -m precise_rag` runs it, too."""

import sys


def main() -> int:
    """Run the command and return its exit code, also if it is interrupted while its modules are imported."""
    try:
        from precise_rag.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("precise: interrupted\n")
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
