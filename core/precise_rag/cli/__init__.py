"""The `precise` command, whose subcommands are the modules of this package.

Exit codes: 0 success, 1 an error (one line on standard error), 2 a wrong command line, 130 interrupted.
"""

import argparse
import io
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import precise_rag
from precise_rag._data import packaged_toml
from precise_rag.cli.output import warn
from precise_rag.errors import PreciseRagError
from precise_rag.redaction import visible

__all__ = ["main"]
_COMMANDS, _SHARED = packaged_toml("cli/commands.toml").values()
"""Each command is a module of this package, which is imported when it is needed: most import much. It has run
and, for arguments whose default is a setting of the library, DEFAULTS."""
_log = logging.getLogger(__name__)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are safe to show: shells put names of files in place of a `*`."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


class _Warnings(logging.Handler):
    """Prints the library's warnings as the commands print theirs."""

    def emit(self, record: logging.LogRecord) -> None:
        warn(f"warning: {record.getMessage()}")


_WARNINGS = _Warnings(logging.WARNING)


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line. command: the only one that is needed; default: all."""
    from precise_rag.cli.arguments import add_arguments

    parser = _Parser(
        prog="precise",
        description=(precise_rag.__doc__ or "").partition("\n")[0],  # Python -OO has none
        epilog="`precise COMMAND --help` lists the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"precise-rag {precise_rag.__version__}")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=_Parser
    )
    for name in (str(command),) if command in _COMMANDS else _COMMANDS:
        its, module = _COMMANDS[name], import_module(f"{__name__}.{name}")
        own = subparsers.add_parser(name, help=its["help"], description=its["description"])
        add_arguments(own, its["arguments"], _SHARED)
        if "one_of" in its:
            add_arguments(own.add_mutually_exclusive_group(), its["one_of"], _SHARED)
        own.set_defaults(run=module.run, **getattr(module, "DEFAULTS", {}))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. argv: its arguments; default: those of the process."""
    logging.getLogger("precise_rag").addHandler(_WARNINGS)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        words = sys.argv[1:] if argv is None else argv
        args = build_parser(words[0] if words else None).parse_args(words)
        code = int(args.run(args))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        warn("interrupted")
        return 130
    except SystemExit:
        raise
    except BaseException as error:  # a panic of a Rust library is no Exception
        _log.debug("the command failed", exc_info=True)
        warn(_described(error))
        return 1
    finally:
        if sys.stdout is not None:
            try:
                sys.stdout.flush()
            except (OSError, ValueError):  # drop it, or the interpreter tries again when it ends
                with suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _described(error: BaseException) -> str:
    if isinstance(error, PreciseRagError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory; give fewer or shorter documents"
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    return (
        f"{type(error).__name__}: {error}; this is a fault of precise-rag, "
        "please report it at https://github.com/precise-rag/precise-rag/issues"
    )
