"""The prompts of one question, with a caller's own instructions in place of the default ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from precise_rag.checks import check_choice
from precise_rag.errors import InputError
from precise_rag.prompts.answer import ANSWER_TASK, ANSWER_VERSION, FORMS, AnswerStyle
from precise_rag.prompts.prompt import INSTRUCTIONS, Prompt, Shown, lettered, make_prompt, object_schema
from precise_rag.types import Message

ROLES = ("standalone", "rewrite", "relevance", "answer", "judge")
"""What a model is asked for, in the order of a question: the keys of `Wording.instructions`."""
JudgeStyle = Literal["json", "sage"]
"""What a model is told to judge of an answer and its context (SAGE, section VI-A).

"json" (default) asks for JSON. "sage" asks for everything that the prompt in the paper's Fig. 6 asks for, in
fewer words, including its reply format and its 60/40 instruction, but for its example: a model may repeat it
as its own judgement.
"""
_JUDGE_VERSION = "judge/3"
JUDGEMENT_SCHEMA = object_schema(
    {
        "reason": {"type": "string", "description": "one short sentence"},
        "score": {"type": "integer", "enum": list(range(1, 11))},
        "adjustment": {"type": "integer", "enum": [-1, 0, 1]},
    },
    title="judgement",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The styles and instructions of the prompts.

    style: form of the answer (see `precise_rag.prompts.answer`).
    judge_style: form of the judgement (see `JudgeStyle`).
    instructions: texts to use instead of the default instructions, by role (see `ROLES`).
    Raises InputError for an unknown style or role.
    """

    style: AnswerStyle = "open"
    judge_style: JudgeStyle = "json"
    instructions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("style", self.style, get_args(AnswerStyle))
        check_choice("judge_prompt", self.judge_style, get_args(JudgeStyle))
        for role, text in self.instructions.items():
            if role not in ROLES or not isinstance(text, str):
                raise InputError(
                    f"prompts must have texts under the keys {', '.join(ROLES)}, "
                    f"got {type(text).__name__} under {role!r}"
                )

    def for_options(self, options: Sequence[str]) -> "Wording":
        """Return the wording of a question with these options: with any, its style is "choice".

        Raises InputError for the style "choice" without options.
        """
        if self.style == "choice" and not options:
            raise InputError('style "choice" is for questions with options; pass options=')
        return replace(self, style="choice") if options else self

    def standalone(self, question: str, history: Sequence[Message]) -> Prompt:
        """Build the prompt that asks for a question that can be understood without the history before it."""
        turns = [Shown(message.content, message.role) for message in history]
        return self._rewording("standalone", question, turns)

    def rewrite(self, question: str) -> Prompt:
        """Build the prompt that asks to rewrite a question as a search query (ChunkRAG)."""
        return self._rewording("rewrite", question)

    def _rewording(self, role: str, question: str, turns: Sequence[Shown] = ()) -> Prompt:
        own = self.instructions.get(role)
        version = f"{role}/2{'/custom' if own else ''}"
        return make_prompt(version, own or INSTRUCTIONS[role], turns, [("question", question)])

    def answer(self, question: str, passages: Iterable[str | Shown], options: Sequence[str] = ()) -> Prompt:
        """Build the prompt that asks for an answer.

        passages: the context, numbered from 1 in this order: texts, or texts with their sources.
        options: for style "choice": 1 to 26 options, lettered in this order.
        Raises InputError for options that do not fit the style.
        """
        if bool(options) != (self.style == "choice") or len(options) > 26:
            raise InputError(
                f"style 'choice' needs 1 to 26 options, all other styles none; got {len(options)} options "
                f"for style {self.style!r}"
            )
        own = self.instructions.get("answer")
        version = f"{ANSWER_VERSION}/{'custom' if own else self.style}"
        data = [("question", question), ("options", lettered(options))]
        return make_prompt(version, own or ANSWER_TASK.format(form=FORMS[self.style]), passages, data)

    def judge(
        self, question: str, passages: Iterable[str | Shown], draft: str, options: Sequence[str] = ()
    ) -> Prompt:
        """Build the prompt that asks for a judgement of `draft`; it shows what form it had to have."""
        own, style = self.instructions.get("judge"), self.judge_style
        version = f"{_JUDGE_VERSION}/{'custom' if own else style}"
        data = [
            ("task", self.instructions.get("answer") or FORMS[self.style]),
            ("question", question),
            ("options", lettered(options)),
            ("answer", draft),
        ]
        schema = JUDGEMENT_SCHEMA if style == "json" else None
        return make_prompt(version, own or INSTRUCTIONS["judge"][style], passages, data, schema)
