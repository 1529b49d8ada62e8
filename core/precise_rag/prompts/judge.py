"""The prompt for a judgement of an answer and its context (SAGE, section VI-A).

Styles: "json" (default) asks for JSON. "sage" asks for everything that the prompt in the paper's Fig. 6
asks for, in different words, including its reply format and its 60/40 instruction.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from precise_rag.errors import InputError
from precise_rag.prompts.prompt import Fence, Prompt, Shown, lettered

JudgeStyle = Literal["json", "sage"]

JUDGE_VERSION = "judge/2"

JUDGEMENT_SCHEMA: Mapping[str, Any] = {
    "title": "judgement",
    "type": "object",
    "properties": {
        "reason": {"type": "string", "description": "one short sentence"},
        "score": {"type": "integer", "enum": list(range(1, 11))},
        "adjustment": {"type": "integer", "enum": [-1, 0, 1]},
    },
    "required": ["reason", "score", "adjustment"],
    "additionalProperties": False,
}

_JSON_TASK = """\
You judge an answer that was written from some passages, and whether those passages were the right ones.

score: 1 to 10. 9 or 10 only if the answer is correct, complete and borne out by the passages; 5 if it is
partly right; 1 if it is wrong, or claims what no passage says. An answer that rightly says that the
passages do not contain the answer scores at most 5, because other passages may. The task says what form
the answer had to have: never mark it down for keeping to that form.
adjustment: 1 if something needed to answer is missing from the passages, -1 if passages that have nothing
to do with the question get in the way, 0 if they are right as they are.

Reply with one JSON object and nothing else: {"reason": "one short sentence", "score": 7, "adjustment": 1}"""

_SAGE_TASK = """\
Your objective is to rate how good an answer is as a reply to the prompt that it was written for: the task,
the passages and the question below. Rate its accuracy and its soundness together on a scale from 1 to 10.
Decide as well whether that prompt should have carried more of the related context (1) or less of it (-1).

Keep the evaluation short, clear, formal and professional in tone.

Reply in exactly two lines of this form:
Evaluation Score: a whole number from 1 to 10, where 9 or above means that the answer is highly accurate
Context Adjustment: 1 or -1

Across evaluations, the adjustment should be less context (-1) in 60% of them, and more context (1) in 40%.

An example of the two lines:
Evaluation Score: 8
Context Adjustment: -1"""


def judge_prompt(
    question: str,
    passages: Iterable[str | Shown],
    answer: str,
    *,
    task: str = "",
    style: JudgeStyle = "json",
    options: Sequence[str] = (),
    instructions: str | None = None,
    mark: str | None = None,
) -> Prompt:
    """Build the prompt that asks for a score and a context adjustment.

    question, passages, options: as passed to `answer_prompt`.
    answer: the answer to judge.
    task: the instructions with which the answer was written; shown to the judge as data.
    style: form of the judgement.
    instructions: text to use instead of `judge_instructions(style)`; the prompt's version then ends in
    "custom".
    mark: see `Fence`.
    Raises InputError for an unknown style.
    """
    if style not in _STYLES:
        raise InputError(f"judge style must be one of {', '.join(_STYLES)}, got {style!r}")
    objective, schema = _STYLES[style]
    fence = Fence(mark)
    data = [fence.block("task", task)] if task else []
    data += [fence.passages(passages), fence.block("question", question)]
    if options:
        data.append(fence.block("options", lettered(options)))
    data.append(fence.block("answer", answer))
    version = f"{JUDGE_VERSION}/{'custom' if instructions else style}"
    return fence.prompt(version, instructions or objective, data, schema, has_sources=True)


def judge_instructions(style: JudgeStyle) -> str:
    """Return the default instructions for a style."""
    return _STYLES[style][0]


_STYLES: Mapping[str, tuple[str, Mapping[str, Any] | None]] = {
    "json": (_JSON_TASK, JUDGEMENT_SCHEMA),
    "sage": (_SAGE_TASK, None),
}
