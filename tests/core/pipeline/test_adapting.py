"""A reranker is adapted by questions, and left as it is where they show no gain."""

from collections.abc import Sequence

import numpy as np
import pytest

from precise_rag import Document, PreciseRAG
from precise_rag.errors import InputError
from precise_rag.index import HybridIndex
from precise_rag.pipeline import AdaptedReranker, adapt
from precise_rag.rerank import PackagedReranker, rerank
from precise_rag.testing import HashEncoder
from precise_rag.types import Candidate, FloatArray, ScoreScale

_HOUSES = """
    lantern harbour orchard quarry windmill chapel granary tannery smithy brewery bakery foundry
    stable library observatory nursery cannery sawmill dairy forge pottery vineyard aviary kennel
"""
_NAMES = _HOUSES.split()


def questions() -> list[tuple[str, list[tuple[str, int, int]]]]:
    spans = [(name, len(f"The {name} opens at {n} in the morning.")) for n, name in enumerate(_NAMES)]
    return [(f"When does the {name} open?", [(name, 0, end)]) for name, end in spans]


class Right:
    """A reranker that cannot be better: what answers is certain, nothing else is probable."""

    name, is_calibrated = "right", True
    score_scale: ScoreScale = "probability"

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        name = query.removeprefix("When does the ").removesuffix(" open?")
        return np.array(
            [0.9999 if f"The {name} opens" in c.text else 0.0001 for c in candidates], dtype=np.float32
        )


class Wrong(Right):
    """A reranker that is sure, and wrong: what answers is least probable."""

    name = "wrong"

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        return 1 - super().score(query, candidates)


class Short(Wrong):
    """One that scores long texts by their sentences."""

    longest_text = 12


@pytest.fixture(scope="module")
def index() -> HybridIndex:
    documents = [
        Document(
            name,
            f"The {name} opens at {n} in the morning. The {name} was built by a guild whose members came "
            f"from both sides of the river. A book was kept of what the {name} cost in timber and bread.",
        )
        for n, name in enumerate(_NAMES)
    ]
    return HybridIndex.build(documents, HashEncoder())


@pytest.mark.parametrize("wrong", [Wrong(), Short()])
def test_what_the_search_knows_better_is_learned(index: HybridIndex, wrong: Wrong) -> None:
    found = adapt(index, questions(), reranker=wrong)
    assert found.says.startswith("adapted the order and the levels: log loss ")
    assert f"on {len(_NAMES)} questions, each held out" in found.says
    assert isinstance(found.reranker, AdaptedReranker)
    for reranker in (found.reranker, AdaptedReranker(wrong, found.reranker.weights)):
        best = PreciseRAG(index, reranker=reranker).retrieve("When does the quarry open?").decisions[0]
        assert best.candidate.text == "The quarry opens at 3 in the morning."
    again = adapt(index, questions(), reranker=found.reranker).reranker
    assert isinstance(again, AdaptedReranker)
    assert again.weights == found.reranker.weights, "it is adapted anew, not twice"


def test_nothing_is_adapted_without_a_gain_and_too_few_questions_are_refused(index: HybridIndex) -> None:
    right = Right()
    found = adapt(index, questions(), reranker=right)
    assert found.reranker is right
    assert found.says.startswith("kept as it is, nothing is surely gained: log loss ")
    assert "100.0 % before, 100.0 % adapted" in found.says
    given = [*questions()[:19], ("What else?", [])]
    with pytest.raises(InputError, match=r"20 questions with evidence are .*got 19 with evidence of 20"):
        adapt(index, given, reranker=Wrong())
    with pytest.raises(InputError, match="evidence 1 to 9999 is not in"):
        adapt(index, [*questions(), ("What else?", [(_NAMES[0], 1, 9999)])], reranker=Wrong())


def test_weights_change_probabilities_or_the_order_and_nothing_else() -> None:
    texts = ["The lamp is lit by Ilse Brandt.", "Two ferries cross.", "Лампу хранит Ильзе Брандт."]
    given = [Candidate("d", n, n + 1, text, 1.0 - n, "cosine") for n, text in enumerate(texts)]
    packaged, query = PackagedReranker(), "Who lights the lamp?"
    own = packaged.score(query, given)
    np.testing.assert_allclose(AdaptedReranker(packaged, {"base": 1.0}).score(query, given), own, atol=1e-4)
    lower = AdaptedReranker(packaged, {"base": 1.0, "offset": -1.0}).score(query, given)
    assert (lower < own).all()
    assert np.argsort(lower).tolist() == np.argsort(own).tolist()
    by_search = rerank(query, given[::-1], AdaptedReranker(packaged, {"base": 0.0, "search": 1.0}))
    assert [c.text for c in by_search] == texts
    assert AdaptedReranker(packaged, {}).score(query, []).shape == (0,)
    for weights in ({"other": 1.0}, {"base": float("nan")}):
        with pytest.raises(InputError, match="weights must be finite numbers of base, search and offset"):
            AdaptedReranker(packaged, weights)
