"""A setting that cannot be is refused at once, by its name."""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from precise_rag import (
    Budget,
    DynamicThreshold,
    FeedbackController,
    GradientSelector,
    HybridIndex,
    OpenAIChat,
    PreciseRAG,
    RedundancyFilter,
    RelevanceFilter,
    Segmenter,
    ToolResultPruner,
)
from precise_rag.errors import InputError
from precise_rag.evidence import EvidenceGrower
from precise_rag.rerank import LevelledReranker
from precise_rag.selection import ProbabilitySelector
from precise_rag.testing import HashEncoder, ScriptedLLM

LLM = ScriptedLLM([])
WRONG: dict[Callable[..., object], dict[str, Any]] = {
    RedundancyFilter: {"similarity_threshold": [0.0, 1.1], "prefilter": [-0.5]},
    partial(RelevanceFilter, LLM): {"batch_size": [0], "max_concurrency": [0]}
    | {"mode": ["both"], "unscored": ["half"]},
    DynamicThreshold: {"ceiling": [0.2, 1.5], "min_keep": [-1], "tight": [-0.1]},
    GradientSelector: {"min_k": [0], "ratio": [1.5], "min_gap": [-1.0], "min_keep": [-1]}
    | {"max_k": [0], "max_tokens": [0], "moves": ["both"]},
    ProbabilitySelector: {"share_of_best": [-1], "min_score": [2], "enough_tokens": [0], "max_tokens": [0]},
    FeedbackController: {"reach": [0], "max_rounds": [-1], "accept": [11]},
    Budget: {"calls": [0], "tokens": [0], "seconds": [0], "cost": [0]},
    partial(Segmenter.from_pretrained, "small"): {"threshold": [1.0, "x", math.nan], "max_tokens": [0, 1.5]}
    | {"min_tokens": [10_000, "9"], "target_tokens": [2.5], "coarse_tokens": [True], "paragraphs": ["x"]},
    partial(EvidenceGrower, HybridIndex.build([], HashEncoder())): {"min_score": [2]},
    partial(LevelledReranker, object()): {"share": [2]},
    partial(OpenAIChat, "m"): {"timeout": [0]},
    partial(PreciseRAG, None, LLM): {"style": ["long"], "judge_prompt": ["x"]},
    ToolResultPruner: {"max_tokens": [99], "max_results": [0], "keep_seconds": [-1], "reranker": ["no such"]},
}
CASES = [
    (make, name, value) for make, wrong in WRONG.items() for name, values in wrong.items() for value in values
]


@pytest.mark.parametrize(("make", "name", "value"), CASES)
def test_a_setting_that_cannot_be_is_refused(make: Callable[..., object], name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"{name}.*{re.escape(str(value))}"):
        make(**{name: value})
