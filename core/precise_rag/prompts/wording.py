"""The prompts of one feedback loop: how it asks for an answer, and how it has it judged."""

from collections.abc import Sequence
from dataclasses import dataclass

from precise_rag.prompts.answer import AnswerStyle, answer_instructions, answer_prompt
from precise_rag.prompts.judge import JudgeStyle, judge_prompt
from precise_rag.prompts.prompt import Prompt
from precise_rag.types import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """A style of answering and of judging, or instructions in place of theirs."""

    style: AnswerStyle = "open"
    judge_style: JudgeStyle = "json"
    answer_instructions: str | None = None
    judge_instructions: str | None = None

    def answer(self, question: str, passages: Sequence[Candidate], options: Sequence[str] = ()) -> Prompt:
        """The prompt for a draft."""
        return answer_prompt(
            question, passages, style=self.style, options=options, instructions=self.answer_instructions
        )

    def judge(
        self, question: str, passages: Sequence[Candidate], draft: str, options: Sequence[str] = ()
    ) -> Prompt:
        """The prompt for a judgement of `draft`, which shows the judge the task it was written for."""
        return judge_prompt(
            question,
            passages,
            draft,
            task=self.answer_instructions or answer_instructions(self.style),
            style=self.judge_style,
            options=options,
            instructions=self.judge_instructions,
        )
