"""What a model is told to judge of an answer and its context (SAGE, section VI-A).

Styles: "json" (default) asks for JSON. "sage" asks for everything that the prompt in the paper's Fig. 6
asks for, in fewer words, including its reply format and its 60/40 instruction, but for its example:
a model may repeat it as its own judgement.
"""

from collections.abc import Mapping
from typing import Any, Literal

from precise_rag.prompts.prompt import INSTRUCTIONS, object_schema

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

JUDGE_TASKS: Mapping[JudgeStyle, str] = INSTRUCTIONS["judge"]
