"""A setting that cannot be is refused at once, by its name."""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import precise_rag as pr
from precise_rag.checks import check_number
from precise_rag.errors import InputError
from precise_rag.evidence import EvidenceGrower
from precise_rag.rerank import LevelledReranker
from precise_rag.selection import ProbabilitySelector
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.documents import read_cases

LLM = ScriptedLLM([])
ENCODER = HashEncoder()
WRONG: dict[Callable[..., object], dict[str, Any]] = {
    pr.RedundancyFilter: {"similarity_threshold": [0.0, 1.1], "prefilter": [-0.5]},
    partial(pr.RelevanceFilter, LLM): {"batch_size": [0], "max_concurrency": [0]}
    | {"mode": ["both"], "unscored": ["half"]},
    pr.DynamicThreshold: {"ceiling": [0.2, 1.5], "min_keep": [-1], "tight": [-0.1]},
    pr.GradientSelector: {"min_k": [0], "ratio": [1.5], "min_keep": [-1]}
    | {"max_k": [0], "max_tokens": [0], "moves": ["both"]},
    ProbabilitySelector: {"share_of_best": [-1], "min_score": [2], "max_tokens": [0]}
    | {"enough_tokens": [0], "enough_share": [-0.1, 1.1]},
    pr.FeedbackController: {"reach": [0], "max_rounds": [-1], "accept": [11]},
    pr.Budget: {"calls": [0], "tokens": [0], "seconds": [0], "cost": [0]},
    partial(pr.Segmenter.from_pretrained, "small"): {"threshold": [1.0, "x", math.nan]}
    | {"max_tokens": [0, 1.5]}
    | {"min_tokens": [10_000, "9"], "target_tokens": [2.5], "coarse_tokens": [True], "paragraphs": ["x"]},
    partial(EvidenceGrower, pr.HybridIndex.build([], ENCODER)): {"min_score": [2]},
    partial(LevelledReranker, object()): {"share": [2]},
    partial(pr.OpenAIChat, "m"): {"timeout": [0]},
    partial(pr.PreciseRAG, None, LLM): {"style": ["long"], "judge_prompt": ["x"]},
    pr.ToolResultPruner: {"max_tokens": [99], "max_results": [0]}
    | {"keep_seconds": [-1], "reranker": ["no such"]},
    partial(pr.HybridIndex.build, [], ENCODER): {"surroundings": [-1], "dense_weight": [1.5], "pool": [0]}
    | {"k1": [-1.0], "b": [-0.1, 1.1], "stop_words": ["klingon"]},
    partial(pr.DenseIndex.build, [], ENCODER): {"backend": ["torch", "faiss:"], "alpha": [1.5]}
    | {"chunks": [0], "chunk_vectors": ["sum"]},
    partial(pr.SentenceContextIndex.build, [], ENCODER): {"passages": [""], "context": ["sum"]}
    | {"similarity": ["l2"]},
    partial(pr.WordSentenceIndex.build, [], ENCODER): {"min_overlap": [0], "max_candidates": [0]},
    lambda **wrong: next(pr.weighted_chunks([], ENCODER, **wrong)): {"whole": [2], "alpha": [-1]},
    partial(pr.HybridIndex.build([pr.Document("a", "A cat.")], ENCODER).search, "cat"): {"alpha": [1.5]}
    | {"returns": ["page"]},
}
CASES = [
    (make, name, value) for make, wrong in WRONG.items() for name, values in wrong.items() for value in values
]


@pytest.mark.parametrize(("make", "name", "value"), CASES)
def test_a_setting_that_cannot_be_is_refused(make: Callable[..., object], name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"{name}.*{re.escape(str(value))}"):
        make(**{name: value})


@pytest.mark.parametrize("value", [0, 0.5, np.float32(1.0), np.int64(3), None])
def test_numbers_in_the_range_pass_and_none_where_it_means_something(value: Any) -> None:
    check_number("x", value, least=0, most=3, none="no limit")


@pytest.mark.parametrize(
    ("value", "options", "said"),
    [
        *read_cases("commands.json", "numbers that are refused"),
        ("y" * 100, {}, f"got '{'y' * 59}…"),
        (math.nan, {}, "x must be a finite number, got nan"),
        (math.inf, {"least": 0}, "x must be a finite number, at least 0, got inf"),
        pytest.param(10**5_000, {}, "x must be a finite number, got a huge number", id="huge"),
    ],
)
def test_any_other_value_is_named_with_the_rule(value: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as raised:
        check_number("x", value, **options)
    assert said in str(raised.value)
