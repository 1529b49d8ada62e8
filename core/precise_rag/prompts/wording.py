"""The prompts of one feedback loop."""

from collections.abc import Sequence
from dataclasses import dataclass

from precise_rag.prompts.answer import AnswerStyle, answer_instructions, answer_prompt
from precise_rag.prompts.judge import JudgeStyle, judge_prompt
from precise_rag.prompts.prompt import Prompt
from precise_rag.types import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The style or instructions of the answer prompt and of the judge prompt.

    style: form of the answer (see `answer_prompt`).
    judge_style: form of the judgement (see `judge_prompt`).
    answer_instructions, judge_instructions: texts to use instead of the styles' default instructions.
    """

    style: AnswerStyle = "open"
    judge_style: JudgeStyle = "json"
    answer_instructions: str | None = None
    judge_instructions: str | None = None

    def answer(self, question: str, passages: Sequence[Candidate], options: Sequence[str] = ()) -> Prompt:
        """Build the prompt that asks for an answer."""
        return answer_prompt(
            question, passages, style=self.style, options=options, instructions=self.answer_instructions
        )

    def judge(
        self, question: str, passages: Sequence[Candidate], draft: str, options: Sequence[str] = ()
    ) -> Prompt:
        """Build the prompt that asks for a judgement of `draft`; it shows the answer's instructions."""
        return judge_prompt(
            question,
            passages,
            draft,
            task=self.answer_instructions or answer_instructions(self.style),
            style=self.judge_style,
            options=options,
            instructions=self.judge_instructions,
        )
