"""`precise completion SHELL`: what a shell needs to complete commands, options and paths."""

import argparse
from collections.abc import Iterator

from precise_rag._extras import require
from precise_rag.cli.given_documents import index_argument, path_argument
from precise_rag.cli.output import Subparsers, show_styled

_SHELLS = ("bash", "zsh", "fish")


def add_parser(subparsers: Subparsers) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "completion",
        help="print what a shell needs to complete commands, options and paths",
        description="Print the completion script of a shell. Where to put it is in the documentation.",
    )
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from precise_rag.cli import build_parser

    shtab = require("shtab", extra="cli")
    parser = build_parser()
    for action in _actions(parser):
        if action.type in (path_argument, index_argument):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    show_styled(shtab.complete(parser, args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
