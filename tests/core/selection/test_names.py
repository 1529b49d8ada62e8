import pytest

from precise_rag import Candidate
from precise_rag.selection import ProbabilitySelector
from precise_rag.selection.names import name_bearers

QUERY = "Are both Coldplay and the singer Pierre Bouvier from the same country?"


def sentence(text: str, score: float, **metadata: str) -> Candidate:
    return Candidate(f"d{score}", 0, len(text), text, score, "probability", 10, metadata=metadata)


BOUVIER = sentence("Pierre Bouvier is a singer from Canada.", 0.9)
COLDPLAY = sentence("Coldplay are a rock band.", 0.004)
COUNTRY = sentence("Coldplay come from the same country as their singer.", 0.003)
OTHER = sentence("It rained all day.", 0.005)


def named(*candidates: Candidate, query: str = QUERY) -> list[tuple[int, str]]:
    return list(name_bearers(query, [BOUVIER], candidates))


def test_a_name_or_number_that_nothing_kept_mentions_brings_the_sentence_with_the_most_new_words():
    assert named(OTHER, COLDPLAY) == [(1, "Coldplay")]
    assert named(OTHER, COLDPLAY, COUNTRY) == [(2, "Coldplay")]
    titled = sentence("They formed in London.", 0.002, title="Coldplay")
    assert named(OTHER, titled) == [(1, "Coldplay")]
    assert list(name_bearers(QUERY, [BOUVIER, titled], [COLDPLAY])) == []
    assert named(sentence("It was 1996.", 0.01), query="What did she do in 1996?") == [(0, "1996")]


@pytest.mark.parametrize("query", [QUERY.lower(), QUERY.upper(), QUERY.title(), ""])
def test_without_capitals_that_tell_names_there_are_none(query):
    assert named(COLDPLAY, query=query) == []


def test_the_selector_keeps_one_more_if_it_fits_and_anything_is_kept_and_says_why_also_after_feedback():
    selector = ProbabilitySelector(min_keep=1)
    given = [BOUVIER, OTHER, COLDPLAY]
    assert selector.select(given).kept == (BOUVIER,)
    selection = selector.select(given, query=QUERY)
    assert selection.kept == (BOUVIER, COLDPLAY)
    assert selection.reasons[2] == "worth 0.004, but nothing else kept mentions Coldplay"
    given = [BOUVIER, COLDPLAY]
    assert ProbabilitySelector(min_keep=1, max_tokens=19).select(given, query=QUERY).kept == (BOUVIER,)
    assert ProbabilitySelector(min_keep=0, min_score=0.95).select(given, query=QUERY).kept == ()
    given = [BOUVIER, *(sentence(f"It rained {i} days.", 0.1 - i / 100) for i in range(8)), COLDPLAY]
    selector = ProbabilitySelector(min_keep=1, share_of_best=0.5)
    sizes = [len(selector.select(given, query=QUERY, step=step).kept) for step in (0, 1, 2)]
    assert sizes == sorted(set(sizes))
    assert COLDPLAY in selector.select(given, query=QUERY, step=1).kept
