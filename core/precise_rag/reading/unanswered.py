"""What is sent of a selection that a reader has read: all of it, or nothing if it answers nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.protocols import Reader
from precise_rag.types import Candidate, Reading, Selection

Unanswered = Literal["send", "empty"]
"""What happens to a selection that probably does not answer the question. "send": it is sent like any other.
"empty": nothing is sent."""

LEAST_ANSWERED = 0.2
"""Probability that a selection answers the question, under which "empty" sends nothing."""

NOTHING_SENT = 'what was found probably does not answer the question, so nothing is sent (unanswered="empty")'


def check_unanswered(unanswered: object) -> Unanswered:
    """Return the option. Raises InputError if it is none."""
    if unanswered not in get_args(Unanswered):
        raise InputError(f'unanswered must be "send" or "empty", got {shown(unanswered)}')
    return unanswered  # type: ignore[return-value]


def read_selection(
    query: str, selection: Selection, texts: Sequence[Candidate], reader: Reader, unanswered: Unanswered
) -> Selection:
    """Return a selection with what a reader finds in it; see `Selection.answers` and `Selection.answered`.

    texts: what is sent of it.
    unanswered: with "empty", the selection keeps nothing if it probably does not answer the question.
    """
    reading = reader.read(query, texts)
    if not isinstance(reading, Reading):
        raise InputError(
            f"{type(reader).__name__}.read must return a Reading of precise_rag.types, got {shown(reading)}"
        )
    read = replace(selection, answers=reading.answers, answered=reading.answered)
    if unanswered == "send" or read.answered is None or read.answered >= LEAST_ANSWERED:
        return read
    reason = f'what was found probably does not answer the question: {read.answered:.2f} (unanswered="empty")'
    return replace(read.dropping({candidate.id: reason for candidate in read.kept}), answers=())


def reading_note(selection: Selection) -> str:
    """Return in words what a reader found in a selection."""
    if selection.answered is None:
        return "not read: only English texts are"
    best = f", most probably: {selection.answers[0].text}" if selection.answers else ""
    return f"answered with a probability of {selection.answered:.2f}{best}"
