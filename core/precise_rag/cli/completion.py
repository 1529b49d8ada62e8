"""`precise --completion SHELL`: what a shell needs to complete commands, options and paths."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from precise_rag.cli.output import show_styled
from precise_rag.cli.reading import index_argument, path_argument

_SHELLS = ("bash", "zsh", "fish")


def add_completion_option(
    parser: argparse.ArgumentParser, build: Callable[[], argparse.ArgumentParser]
) -> None:
    """Add the option. build: makes the parser with all commands."""

    class PrintCompletion(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, _: object, shell: Any, __: object = None) -> None:
            show_styled(_script(build(), shell))
            parser.exit()

    parser.add_argument(
        "--completion",
        action=PrintCompletion,
        choices=_SHELLS,
        metavar="SHELL",
        help=f"print the completion script of a shell ({', '.join(_SHELLS)}) and exit",
    )


def _script(parser: argparse.ArgumentParser, shell: str) -> str:
    import shtab

    for action in _actions(parser):
        if action.type in (path_argument, index_argument):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    script: str = shtab.complete(parser, shell)
    return script


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
