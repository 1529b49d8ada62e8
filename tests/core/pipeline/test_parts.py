"""Single stages decide by themselves: which reranker is asked, and which settings count."""

from types import SimpleNamespace

import pytest

from precise_rag import Candidate, GradientSelector, InputError, ProbabilitySelector
from precise_rag.pipeline.parts import EvidencePart, GradientPart, RerankPart
from precise_rag.trace import Trace


class ByName:
    """A reranker that scores candidates by a table, and keeps the questions."""

    name, score_scale, is_calibrated = "by-name", "probability", True

    def __init__(self, **scores: float) -> None:
        self.scores, self.asked = scores, []

    def score(self, query, candidates):
        self.asked.append(query)
        return [self.scores[candidate.doc_id] for candidate in candidates]


def found(scale="cosine", **scores):
    return [Candidate(name, 0, 1, name, score, scale) for name, score in scores.items()]


def test_the_best_are_kept_and_the_reasons_say_the_ranks():
    part = RerankPart(ByName(a=0.2, b=0.9, c=0.5), top_n=2)
    selection = part.decide("q", found(a=1.0, b=0.5, c=0.1), Trace("q"))
    assert [(c.doc_id, c.score) for c in selection.kept] == [("b", 0.9), ("c", 0.5)]
    assert selection.reasons[0] == "rank 1 of 3 by by-name"
    with pytest.raises(InputError, match="the query must not be blank"):
        part.decide("", found(a=1.0), Trace(""))


@pytest.mark.parametrize("scale", ["cosine", "rank", "probability", "logit"])
def test_scores_of_unknown_meaning_are_reranked_before_the_cut(scale):
    reranker, trace = ByName(a=0.9, b=0.1, c=0.8), Trace("q")
    part = GradientPart(GradientSelector(min_k=1), reranker)
    candidates = found(scale, a=0.9, b=0.85, c=0.01)
    selection = part.decide("q", candidates, trace)
    is_comparable = scale in ("probability", "logit")
    assert (part.reranker_for(candidates) is None) == is_comparable
    assert reranker.asked == [] if is_comparable else ["q"]
    assert [stage.name for stage in trace.stages] == ([] if is_comparable else ["rerank"])
    assert {"a", "c"} <= {c.doc_id for c in selection.kept} or is_comparable


def test_of_the_settings_of_a_component_a_share_on_raw_scores_counts_only_if_it_was_chosen():
    settings = SimpleNamespace(min_k=2, share_of_best=0.25, assume_ratio=False, reranker="default")
    part = GradientPart.of(settings, set(), None)
    assert part == GradientPart(GradientSelector(min_k=2, share_of_best=0.25))
    settings.assume_ratio = True
    assert GradientPart.of(settings, {"min_k"}, None).selector == GradientSelector(min_k=2, assume_ratio=True)
    chosen = GradientSelector(min_k=2, share_of_best=0.25, assume_ratio=True)
    assert GradientPart.of(settings, {"share_of_best"}, None).selector == chosen


async def test_the_evidence_is_that_of_the_extractor_also_without_blocking():
    part = EvidencePart.of(SimpleNamespace(min_score=0.3, min_keep=1, other=1), "packaged")
    assert part.extractor.selector == ProbabilitySelector(min_score=0.3, min_keep=1)
    text = "The bakery opens at six. Ilse Brandt is the captain of the ferry. Rye bread is dark."
    candidates = [Candidate("town", 0, len(text), text, 0.5, "cosine")]
    query = "Who is the captain of the ferry?"
    selection = part.decide(query, candidates, Trace(query))
    assert selection == part.extractor.extract(query, candidates).selection
    assert selection == await part.adecide(query, candidates, Trace(query))
    assert "Ilse Brandt" in selection.kept[0].text
