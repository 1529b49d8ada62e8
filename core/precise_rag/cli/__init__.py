"""The `precise` command: `precise segment | inspect | index | ask | train | eval | demo`.

Exit codes: 0 success, 1 an error (one line on standard error), 2 a wrong command line, 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence

import precise_rag
from precise_rag.cli import ask, demo, eval, index, inspect, segment, train
from precise_rag.errors import PreciseRagError

_COMMANDS = (segment, inspect, index, ask, train, eval, demo)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="precise",
        description=precise_rag.__doc__.splitlines()[0],
        epilog="`precise COMMAND --help` lists the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"precise-rag {precise_rag.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. argv: its arguments; default: those of the process."""
    args = build_parser().parse_args(argv)
    try:
        return int(args.run(args))
    except PreciseRagError as error:
        print(f"precise: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("precise: interrupted", file=sys.stderr)
        return 130
