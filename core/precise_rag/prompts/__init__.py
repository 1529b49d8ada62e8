"""Prompts, each with a version that is recorded in the trace."""

from precise_rag.prompts.answer import NOT_IN_PASSAGES as NOT_IN_PASSAGES
from precise_rag.prompts.answer import AnswerStyle as AnswerStyle
from precise_rag.prompts.answer import answer_instructions as answer_instructions
from precise_rag.prompts.answer import answer_prompt as answer_prompt
from precise_rag.prompts.answer import chosen_option as chosen_option
from precise_rag.prompts.answer import cited_numbers as cited_numbers
from precise_rag.prompts.judge import JUDGEMENT_SCHEMA as JUDGEMENT_SCHEMA
from precise_rag.prompts.judge import JudgeStyle as JudgeStyle
from precise_rag.prompts.judge import judge_instructions as judge_instructions
from precise_rag.prompts.judge import judge_prompt as judge_prompt
from precise_rag.prompts.prompt import Fence as Fence
from precise_rag.prompts.prompt import Prompt as Prompt
from precise_rag.prompts.prompt import Shown as Shown
from precise_rag.prompts.relevance import RELEVANCE_HEURISTICS as RELEVANCE_HEURISTICS
from precise_rag.prompts.relevance import relevance_instructions as relevance_instructions
from precise_rag.prompts.relevance import relevance_prompt as relevance_prompt
from precise_rag.prompts.relevance import single_relevance_prompt as single_relevance_prompt
from precise_rag.prompts.relevance import threshold_prompt as threshold_prompt
from precise_rag.prompts.rewrite import rewrite_instructions as rewrite_instructions
from precise_rag.prompts.rewrite import rewrite_prompt as rewrite_prompt
from precise_rag.prompts.standalone import standalone_instructions as standalone_instructions
from precise_rag.prompts.standalone import standalone_prompt as standalone_prompt
from precise_rag.prompts.wording import Wording as Wording
