"""The prompt for an answer from the selected passages.

Styles: "open" (sentences with citations), "short" (a name, a number or a phrase) and "choice" (one of
the given options).
"""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from precise_rag.errors import InputError
from precise_rag.prompts.prompt import Prompt, Shown, lettered, make_prompt

AnswerStyle = Literal["open", "short", "choice"]

ANSWER_VERSION = "answer/4"
NOT_IN_PASSAGES = "The passages do not contain the answer."
"""The sentence with which the model replies if the passages do not contain the answer."""
REFUSED = "the model finds no answer in the passages"

_TASK = (
    "Answer the question from the passages alone. {form} A source holds up to the next one. If passages "
    f"contradict each other, say so. If they do not contain the answer, reply with exactly: {NOT_IN_PASSAGES}"
)
FORMS: Mapping[AnswerStyle, str] = {
    "open": "Write a few plain sentences, each with its passages' numbers in square brackets, such as [2].",
    "short": "Write only the shortest complete phrase: a name, number, date, yes or no; no citation.",
    "choice": "Write only the letter of the one option that the passages support best.",
}
"""What form an answer has, by style."""


def answer_prompt(
    question: str,
    passages: Iterable[str | Shown],
    *,
    style: AnswerStyle = "open",
    options: Sequence[str] = (),
    instructions: str | None = None,
) -> Prompt:
    """Build the prompt that asks for an answer.

    question: the question.
    passages: the context, numbered from 1 in this order: texts, or texts with their sources.
    style: form of the answer.
    options: for style "choice": 1 to 26 options, lettered in this order.
    instructions: text to use instead of `answer_instructions(style)`; the prompt's version then ends in
    "custom".
    Raises InputError for an unknown style, or options that do not fit the style.
    """
    if style not in get_args(AnswerStyle):
        raise InputError(f"style must be one of {', '.join(get_args(AnswerStyle))}, got {style!r}")
    if bool(options) != (style == "choice") or len(options) > 26:
        raise InputError(
            f"style 'choice' needs 1 to 26 options, all other styles none; got {len(options)} options "
            f"for style {style!r}"
        )
    data = [("question", question), ("options", lettered(options))]
    version = f"{ANSWER_VERSION}/{'custom' if instructions else style}"
    return make_prompt(version, instructions or answer_instructions(style), passages, data)


def answer_instructions(style: AnswerStyle) -> str:
    """Return the default instructions for a style."""
    return _TASK.format(form=FORMS[style])


def cited_numbers(text: str) -> list[int]:
    """Return the numbers that an answer cites, such as [2] or [1, 3], each once, in their order in it."""
    numbers = (n for group in _CITATION.findall(text) for n in re.findall(r"\d+", group) if len(n) < 10)
    return list(dict.fromkeys(map(int, numbers)))


def problem_of(draft: str, mark: str) -> str:
    """Return what keeps a draft from being an answer; an empty string if nothing does.

    mark: the mark of its prompt.
    """
    if _REFUSAL.fullmatch(draft):
        return REFUSED
    if any(line.strip().startswith(mark) for line in draft.splitlines()):
        return "the draft repeats marks of the prompt"
    said = [part for part in _CITATION.sub(" ", draft).split() if not part.startswith(mark)]
    words = re.findall(r"<[^<>\s]*>|\w+", " ".join(said)) or "".join(said)
    # The words of a text grow at least with the root of its length (Heaps' law), unless it repeats itself.
    if not words or len(words) > max(2, len(set(words)) ** 2):
        return "the draft is empty or repeats itself"
    return ""


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


_REFUSAL = re.compile(
    r"[\W\d]*+(?:the (?:\w+ )?passages? do(?:es)?(?: not|n.t) contain \w+ answer\b[^.!?,;]*+[\W\d]*+)+", re.I
)
"""`NOT_IN_PASSAGES` in nearly the same words, and nothing else."""
_CITATION = re.compile(r"\[((?:passages? )?\d+(?:\s*,\s*\d+)*)\]")
_CHOICE = re.compile(
    r"(?:(?:the\s+)?(?:correct\s+)?(?:answer|option)\s*+(?:is\s*+)?(?::\s*+)?)?\(?([A-Za-z])(?:[).:]|\s*+$)",
    re.I,
)
