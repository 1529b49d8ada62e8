from dataclasses import replace

import pytest

from precise_rag import Document, PreciseRAG
from precise_rag.index import HybridIndex
from precise_rag.pipeline.searching import _behind
from precise_rag.testing import HashEncoder
from precise_rag.trace import Trace
from precise_rag.types import Candidate, best_first
from support.scored import Scored

QUESTION = "When was the harbour lamp of Marrow first lit by Ada Brandt?"
TRUTH = "Ada Brandt lit the lamp in 1931, in the week after Easter."


def lamps():
    """A reranker that knows the truth."""
    return Scored(lambda text: 0.9 if text == TRUTH else 0.1)


class Source:
    """Returns as many of its texts as it is asked for, all of the loud document but the truth."""

    def __init__(self, texts, most=10_000):
        self.found = [
            Candidate("truth" if text == TRUTH else "loud", 100 * n, 100 * n + len(text), text, -n, "rank")
            for n, text in enumerate(texts)
        ]
        self.asked, self.most = [], most

    def search(self, query, top_k, /):
        self.asked.append(top_k)
        return self.found[: min(top_k, self.most)]


def loud(n):
    return [f"{QUESTION} No {k}." for k in range(n)]


def path_over(source, **parts):
    return PreciseRAG(source, reranker=lamps(), evidence=None, **parts)


async def test_a_source_is_searched_further_until_others_are_found_in_steps_that_end():
    source = Source([*loud(150), TRUTH])
    rag, trace = path_over(source), Trace(QUESTION)
    selection = rag.retrieve(QUESTION, trace=trace)
    assert selection.kept[0].text == TRUTH
    assert source.asked == [50, 200]
    reasons = trace.stages[0].selection.reasons
    assert any("had their share of the 50 places" in reason for reason in reasons)
    assert await rag.aretrieve(QUESTION) == selection
    assert len(rag.path.reranker.read) == 50

    hopeless = Source([*loud(5000), TRUTH])
    path_over(hopeless).retrieve(QUESTION)
    assert hopeless.asked == [50, 200, 800]


def test_repeats_take_no_place_and_are_decisions_with_the_score_of_what_they_repeat():
    source = Source([QUESTION] * 60 + [TRUTH])
    selection = path_over(source, redundancy=None).retrieve(QUESTION)
    assert selection.kept[0].text == TRUTH
    repeats = [d for d in selection.decisions if d.reason.startswith("repeats loud:0-")]
    assert [d.candidate.score for d in repeats] == pytest.approx([0.1] * 59)


def test_a_source_may_decide_how_many_are_found_or_fetched_first_and_without_a_reranker_is_searched_once():
    source = Source(loud(70), most=7)
    path_over(source).retrieve(QUESTION)
    assert source.asked == [50]

    class All(Source):
        def search(self, query, top_k, /):
            self.asked.append(top_k)
            return self.found

    every = All(loud(70))
    rag = path_over(every)
    rag.retrieve(QUESTION)
    assert (every.asked, len(rag.path.reranker.read)) == ([50], 70)
    source = Source([*loud(70), TRUTH])
    source.fetch_k = 20  # type: ignore[attr-defined]
    rag = path_over(source)
    assert rag.retrieve(QUESTION).kept[0].text == TRUTH
    assert (source.asked, len(rag.path.reranker.read)) == ([20, 80], 20)
    source = Source(loud(150))
    selection = PreciseRAG(source, preset="recursive").retrieve(QUESTION)
    assert (source.asked, len(selection.decisions)) == ([10], 10)


@pytest.mark.slow
@pytest.mark.parametrize("n_documents", [1, 5])
def test_documents_that_fill_the_search_are_left_out_of_the_next_one(n_documents):
    lines = [f"{QUESTION} {word}{n}." for n in range(400) for word in ("Yes", "No", "So")]
    full = [Document(f"loud {n}", "\n".join(lines), {"tenant": "a"}) for n in range(n_documents)]
    hidden = Document("hidden", TRUTH, {"tenant": "b"})
    others = [Document(f"other {n}", f"The lamp of mill {n} is dark.", {"tenant": "a"}) for n in range(30)]
    truth = Document("truth", f"{TRUTH}\nIt was dark before.", {"tenant": "a"})
    index = HybridIndex.build([*full, *others, truth, hidden], HashEncoder())
    rag = PreciseRAG(index, reranker=lamps())
    kept = rag.retrieve(QUESTION, filter={"tenant": "a"}).kept
    assert (kept[0].text, {c.doc_id for c in kept if c.text == TRUTH}) == (TRUTH, {"truth"})
    assert len(rag.path.reranker.read) <= 50


def test_scores_of_a_search_that_leaves_out_the_loud_do_not_lift_others_over_what_was_found_first():
    """Each search scales fused scores by its own best: the others' best has 1.0 again."""
    first = [Candidate("a", n, n + 1, "x", 1.0 - n / 10, "rank") for n in range(5)]
    more = [Candidate("b", n, n + 1, "y", 1.0 - n / 10, "rank") for n in range(3)]
    behind = _behind(first, more)
    assert [c.doc_id for c in behind] == ["a"] * 5 + ["b"] * 3
    assert [c.start for c in behind[5:]] == [0, 1, 2]
    assert behind == best_first(behind)
    cosines = _behind(
        [replace(c, score_scale="cosine") for c in first], [replace(c, score_scale="cosine") for c in more]
    )
    assert [c.score for c in cosines] == sorted((c.score for c in [*first, *more]), reverse=True)
