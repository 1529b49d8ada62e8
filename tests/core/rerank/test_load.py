from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.rerank import CrossEncoderReranker, load_reranker
from precise_rag.types import Candidate, FloatArray, ScoreScale


class Zeros:
    name = "zeros"
    score_scale: ScoreScale = "logit"

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        return np.zeros(len(candidates), dtype=np.float32)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("packaged", "packaged"),
        ("cascade", "cascade"),
        ("cohere", "cohere:rerank-v3.5"),
        ("cohere:rerank-english-v3.0", "cohere:rerank-english-v3.0"),
    ],
)
def test_rerankers_by_name(name: str, expected: str) -> None:
    assert load_reranker(name).name == expected


def test_packaged_rerankers_are_loaded_once() -> None:
    assert load_reranker() is load_reranker("packaged")
    assert load_reranker("cascade") is load_reranker("cascade")


def test_any_other_name_is_a_cross_encoder() -> None:
    reranker = load_reranker("a/model")
    assert isinstance(reranker, CrossEncoderReranker)
    assert reranker.name == "a/model"


def test_objects_that_score_are_returned_and_others_refused() -> None:
    mine = Zeros()
    assert load_reranker(mine) is mine
    with pytest.raises(InputError, match="got dict"):
        load_reranker(cast(Any, {}))


def test_the_default_is_the_cascade() -> None:
    assert load_reranker("default").name == "cascade"
    assert load_reranker("default") is load_reranker("cascade")


@pytest.mark.parametrize("name", ["pakaged", "cohore:rerank-v3.5", "ms-marco-MiniLM-L6-v2", ""])
def test_a_misspelt_name_fails_at_once(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown reranker .*; pass \"default\""):
        load_reranker(name)
