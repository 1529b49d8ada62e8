"""Prompts, each with a version that is recorded in the trace."""

from precise_rag.prompts.answer import (
    NOT_IN_PASSAGES,
    REFUSED,
    AnswerStyle,
    chosen_option,
    cited_numbers,
    numbered,
    problem_of,
)
from precise_rag.prompts.judge import JudgeStyle
from precise_rag.prompts.prompt import Prompt, Shown, make_prompt
from precise_rag.prompts.wording import Wording

__all__ = [
    "NOT_IN_PASSAGES",
    "REFUSED",
    "AnswerStyle",
    "JudgeStyle",
    "Prompt",
    "Shown",
    "Wording",
    "chosen_option",
    "cited_numbers",
    "make_prompt",
    "numbered",
    "problem_of",
]
