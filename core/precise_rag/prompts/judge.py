"""What a model is told to judge of an answer and its context (SAGE, section VI-A).

Styles: "json" (default) asks for JSON. "sage" asks for everything that the prompt in the paper's Fig. 6
asks for, in fewer words, including its reply format and its 60/40 instruction, but for its example:
a model may repeat it as its own judgement.
"""

from collections.abc import Mapping
from typing import Any, Literal

from precise_rag.prompts.prompt import object_schema

JudgeStyle = Literal["json", "sage"]

JUDGE_VERSION = "judge/3"

JUDGEMENT_SCHEMA: Mapping[str, Any] = object_schema(
    {
        "reason": {"type": "string", "description": "one short sentence"},
        "score": {"type": "integer", "enum": list(range(1, 11))},
        "adjustment": {"type": "integer", "enum": [-1, 0, 1]},
    },
    title="judgement",
)

JUDGE_TASKS: Mapping[JudgeStyle, str] = {
    "json": """\
Judge how well the answer does its task from the passages.
score: from 9 only if it is correct, complete and supported, 5 if partly, 1 if wrong.
adjustment: 1 if the passages lack something, -1 if unrelated ones disturb, else 0.
Reply with one JSON object: reason (one short sentence), score (from 1 to 10), adjustment.""",
    "sage": """\
Rate the accuracy and soundness of the answer from 1 to 10, and decide on more context (1) or less (-1): less
in 60% of evaluations, more in 40%. Be short, clear, formal and professional. Reply in two lines:
Evaluation Score: 1-10, 9 or above if highly accurate
Context Adjustment: 1 or -1""",
}
