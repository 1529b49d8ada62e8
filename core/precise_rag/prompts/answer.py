"""Answering from the selected passages and nothing else.

Three styles: `short` (a name, a number, a phrase), `open` (sentences with citations) and `choice`
(one of the given options).
"""

import re
import string
from collections.abc import Sequence
from typing import Literal, get_args

from precise_rag.errors import InputError
from precise_rag.prompts.prompt import Fence, Prompt, lettered
from precise_rag.types import Candidate, Message

AnswerStyle = Literal["open", "short", "choice"]

ANSWER_VERSION = "answer/1"
NOT_IN_PASSAGES = "The passages do not contain the answer."
"""What the model is told to say, word for word, when the answer is not there."""

_TASK = (
    "You answer a question from the passages you are given. Use only what they say: no outside "
    "knowledge, no guesses. Where they contradict each other, say so. If they do not contain the "
    f"answer, reply with exactly this sentence: {NOT_IN_PASSAGES}"
)
_STYLE = {
    "open": (
        "Answer in a few plain sentences. After each statement name the passages it rests on by "
        "their numbers in square brackets, like [2] or [1][3]."
    ),
    "short": (
        "Answer with the shortest phrase that is complete: a name, a number, a date, yes or no, or a "
        "few words, taken from the passages where possible. Write nothing else: no sentence around "
        "it, no explanation, no citation."
    ),
    "choice": (
        "The question comes with lettered options. Reply with the letter of the one option that the "
        "passages support best, and nothing else."
    ),
}


def answer_prompt(
    question: str,
    passages: Sequence[Candidate],
    *,
    style: AnswerStyle = "open",
    options: Sequence[str] = (),
    instructions: str | None = None,
    mark: str | None = None,
) -> Prompt:
    """The prompt that asks for an answer from `passages`, best first.

    options: the choices of style "choice", at most 26, lettered in order. instructions: in place of
    `answer_instructions(style)`; the version then ends in "custom". mark: see `Fence`.
    Raises InputError for an unknown style, or options that do not go with it.
    """
    if style not in get_args(AnswerStyle):
        raise InputError(f"style is {style!r}; expected one of {', '.join(get_args(AnswerStyle))}")
    if bool(options) != (style == "choice") or len(options) > 26:
        raise InputError(
            f"style {style!r} with {len(options)} options; style 'choice' takes 1 to 26, others none"
        )
    fence = Fence(mark)
    data = [
        fence.blocks("passage", (passage.text for passage in passages)),
        fence.block("question", question),
    ]
    if options:
        data.append(fence.block("options", lettered(options)))
    return Prompt(
        f"{ANSWER_VERSION}/{'custom' if instructions else style}",
        (
            Message("system", f"{instructions or answer_instructions(style)}\n\n{fence.rule}"),
            Message("user", "\n\n".join(data)),
        ),
    )


def answer_instructions(style: AnswerStyle) -> str:
    """What the model is told for a style, before the rule about data."""
    return f"{_TASK}\n\n{_STYLE[style]}"


def cited_passages(text: str, passages: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The passages that an answer names as [n], in passage order; numbers of none are ignored."""
    numbers = {int(n) for group in _CITATION.findall(text) for n in re.findall(r"\d+", group)}
    return tuple(passage for n, passage in enumerate(passages, start=1) if n in numbers)


def chosen_option(text: str, options: Sequence[str]) -> int | None:
    """The index of the option that a reply to style "choice" names, or None if it names none.

    A letter at the start or alone counts ("B", "(b)", "Answer: B."), else an option's own words.
    """
    letters = string.ascii_uppercase[: len(options)]
    if found := _CHOICE.match(text.strip()):
        index = letters.find(found[1].upper())
        return index if index >= 0 else None
    said = [i for i, option in enumerate(options) if option.strip().lower() in text.lower()]
    return said[0] if len(said) == 1 else None


_CITATION = re.compile(r"\[((?:passages? )?\d+(?:\s*,\s*\d+)*)\]")
_CHOICE = re.compile(
    r"(?:(?:the\s+)?(?:correct\s+)?(?:answer|option)\s*(?:is)?\s*:?\s*)?\(?([A-Za-z])(?:[).:]|\s*$)", re.I
)
