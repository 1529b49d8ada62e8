"""The prompt for an answer from the selected passages.

Styles: "open" (sentences with citations), "short" (a name, a number or a phrase) and "choice" (one of
the given options).
"""

import re
import string
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from precise_rag.errors import InputError
from precise_rag.prompts.prompt import Fence, Prompt, Shown, lettered

AnswerStyle = Literal["open", "short", "choice"]

ANSWER_VERSION = "answer/3"
NOT_IN_PASSAGES = "The passages do not contain the answer."
"""The sentence with which the model replies if the passages do not contain the answer."""

_TASK = (
    "You answer a question from the passages you are given. Use only what they say: no outside "
    "knowledge, no guesses. Where passages contradict each other, say so. If they do not contain the "
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
    passages: Iterable[str | Shown],
    *,
    style: AnswerStyle = "open",
    options: Sequence[str] = (),
    instructions: str | None = None,
    mark: str | None = None,
) -> Prompt:
    """Build the prompt that asks for an answer.

    question: the question.
    passages: the context, numbered from 1 in this order: texts, or texts with their sources.
    style: form of the answer.
    options: for style "choice": 1 to 26 options, lettered in this order.
    instructions: text to use instead of `answer_instructions(style)`; the prompt's version then ends in
    "custom".
    mark: see `Fence`.
    Raises InputError for an unknown style, or options that do not fit the style.
    """
    if style not in get_args(AnswerStyle):
        raise InputError(f"style must be one of {', '.join(get_args(AnswerStyle))}, got {style!r}")
    if bool(options) != (style == "choice") or len(options) > 26:
        raise InputError(
            f"style 'choice' needs 1 to 26 options, all other styles none; got {len(options)} options "
            f"for style {style!r}"
        )
    fence = Fence(mark)
    data = [fence.passages(passages), fence.block("question", question)]
    if options:
        data.append(fence.block("options", lettered(options)))
    version = f"{ANSWER_VERSION}/{'custom' if instructions else style}"
    return fence.prompt(version, instructions or answer_instructions(style), data, has_sources=True)


def answer_instructions(style: AnswerStyle) -> str:
    """Return the default instructions for a style."""
    return f"{_TASK}\n\n{_STYLE[style]}"


def cited_numbers(text: str) -> list[int]:
    """Return the numbers that an answer cites, such as [2] or [1, 3], each once, in their order in it."""
    numbers = (n for group in _CITATION.findall(text) for n in re.findall(r"\d+", group) if len(n) < 10)
    return list(dict.fromkeys(map(int, numbers)))


def chosen_option(text: str, options: Sequence[str]) -> int | None:
    """Find the option that a reply to style "choice" names.

    text: the reply: a letter such as "B", "(b)" or "Answer: B.", or the words of one option.
    options: the options of the prompt, in its order.
    Returns the option's index, or None if the reply does not name exactly one.
    """
    letters = string.ascii_uppercase[: len(options)]
    if letter := _CHOICE.match(text.strip()):
        index = letters.find(letter[1].upper())
        return index if index >= 0 else None
    said = [i for i, option in enumerate(options) if option.strip().lower() in text.lower()]
    return said[0] if len(said) == 1 else None


_CITATION = re.compile(r"\[((?:passages? )?\d+(?:\s*,\s*\d+)*)\]")
_CHOICE = re.compile(
    r"(?:(?:the\s+)?(?:correct\s+)?(?:answer|option)\s*+(?:is\s*+)?(?::\s*+)?)?\(?([A-Za-z])(?:[).:]|\s*+$)",
    re.I,
)
