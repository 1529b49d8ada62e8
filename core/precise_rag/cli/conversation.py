"""The conversation of `precise ask INDEX` without a question."""

import webbrowser
from collections.abc import Callable
from contextlib import suppress

from precise_rag.answer import Answer
from precise_rag.cli.output import print_selection, show, temporary_page, warn
from precise_rag.errors import PreciseRagError
from precise_rag.trace import Trace

_HELP = "/why says where the cut fell, /trace opens the page of the last answer, /quit leaves"

Ask = Callable[[str, list[tuple[str, str]], Trace], Answer]
"""Answers a question after the messages before it, and fills the trace."""


def converse(ask: Ask, show_answer: Callable[[Answer, Trace], None]) -> int:
    """Answer questions from the terminal until it ends. A question that fails does not end it."""
    with suppress(ImportError):
        import readline  # noqa: F401  (gives `input` the arrow keys)
    show(f"Ask a question; {_HELP}.")
    history: list[tuple[str, str]] = []
    last: tuple[Answer, Trace] | None = None
    while True:
        try:
            line = input("\n? ").strip()
        except (EOFError, KeyboardInterrupt):
            show()
            return 0
        if line in ("/quit", "/exit"):
            return 0
        try:
            if line.startswith("/"):
                _command(line, last)
            elif line:
                trace = Trace(line)
                answer = ask(line, history, trace)
                show_answer(answer, trace)
                last = answer, trace
                history += [("user", line), ("assistant", answer.text)]
        except PreciseRagError as error:
            warn(error)
        except KeyboardInterrupt:
            warn("interrupted; /quit leaves")


def _command(line: str, last: tuple[Answer, Trace] | None) -> None:
    if line not in ("/why", "/trace"):
        show(_HELP)
    elif last is None:
        show("ask a question first")
    elif line == "/why":
        print_selection(last[0].selection)
    else:
        page = temporary_page(last[1].to_html())
        show(page)
        webbrowser.open(page.as_uri())
