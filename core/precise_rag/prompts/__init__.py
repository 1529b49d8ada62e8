"""Prompts, each with a version that is recorded in the trace."""

from precise_rag.prompts.answer import (
    NOT_IN_PASSAGES,
    REFUSED,
    AnswerStyle,
    answer_instructions,
    answer_prompt,
    chosen_option,
    cited_numbers,
    problem_of,
)
from precise_rag.prompts.judge import JUDGEMENT_SCHEMA, JudgeStyle, judge_prompt
from precise_rag.prompts.prompt import Prompt, Shown, make_prompt
from precise_rag.prompts.relevance import (
    RELEVANCE_HEURISTICS,
    relevance_prompt,
    single_relevance_prompt,
    threshold_prompt,
)
from precise_rag.prompts.rewording import rewrite_prompt, standalone_prompt
from precise_rag.prompts.wording import Wording

__all__ = [
    "JUDGEMENT_SCHEMA",
    "NOT_IN_PASSAGES",
    "REFUSED",
    "RELEVANCE_HEURISTICS",
    "AnswerStyle",
    "JudgeStyle",
    "Prompt",
    "Shown",
    "Wording",
    "answer_instructions",
    "answer_prompt",
    "chosen_option",
    "cited_numbers",
    "judge_prompt",
    "make_prompt",
    "problem_of",
    "relevance_prompt",
    "rewrite_prompt",
    "single_relevance_prompt",
    "standalone_prompt",
    "threshold_prompt",
]
