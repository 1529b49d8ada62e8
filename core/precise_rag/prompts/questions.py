"""The prompt for test questions about a passage, with which retrieval can be evaluated."""

from typing import Any

from precise_rag.prompts.prompt import Fence, Prompt
from precise_rag.types import Message

QUESTIONS_VERSION = "questions/1"

_TASK = (
    "You write test questions for a search system. From the passage you are given, write {n} questions "
    "that a reader of the whole collection could ask without having the passage before them: name what "
    "is meant, never say 'the passage', 'the text' or 'the author'. Each must be answered by the passage "
    "alone. For each give the answer in a few words, and as the quote the one or two sentences that "
    "prove it, copied from the passage character by character. If the passage supports fewer questions, "
    "write fewer. Reply with JSON only."
)

QUESTIONS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in ("question", "answer", "quote")},
                "required": ["question", "answer", "quote"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["questions"],
    "additionalProperties": False,
}


def questions_prompt(passage: str, *, n_questions: int = 2, mark: str | None = None) -> Prompt:
    """Build the prompt that asks for questions about a passage.

    passage: the passage.
    n_questions: most questions to write, each with its answer and a quote from the passage.
    mark: see `Fence`.
    """
    fence = Fence(mark)
    shape = '{"questions": [{"question": "…", "answer": "…", "quote": "…"}]}'
    return Prompt(
        QUESTIONS_VERSION,
        (
            Message("system", f"{_TASK.format(n=n_questions)} The form is {shape}\n\n{fence.rule}"),
            Message("user", fence.block("passage", passage)),
        ),
        QUESTIONS_SCHEMA,
    )
