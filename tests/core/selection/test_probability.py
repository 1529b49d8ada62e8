from dataclasses import replace

import pytest

from precise_rag import Candidate
from precise_rag.errors import ScoreScaleError
from precise_rag.selection import ProbabilitySelector
from precise_rag.selection.names import name_bearers
from precise_rag.types import INSISTENT
from support.documents import read_cases


def candidates(*scores: float, n_tokens: int = 10) -> list[Candidate]:
    return [
        Candidate("d", 20 * i, 20 * i + 10, "ten tokens", s, "probability", n_tokens)
        for i, s in enumerate(scores)
    ]


def kept(selector: ProbabilitySelector, given: list[Candidate]) -> list[float]:
    return [c.score for c in selector.select(given).kept]


def test_the_likeliest_are_enough_where_much_is_alike():
    given = candidates(*(0.9 - place / 100 for place in range(30)), n_tokens=45)
    selection = ProbabilitySelector(enough_tokens=500).select(given)
    assert [c.score for c in selection.kept] == [c.score for c in given[:12]]
    assert "what is likelier has enough tokens" in selection.decisions[12].reason
    assert len(ProbabilitySelector(enough_tokens=500, min_keep=14).select(given).kept) == 14
    assert len(ProbabilitySelector(enough_tokens=None).select(given).kept) == 30
    assert len(ProbabilitySelector(enough_tokens=500, share_of_best=0).select(given).kept) == 30
    sizes = [
        len(ProbabilitySelector(enough_tokens=100).select(given, step=step).kept) for step in (-1, 0, 1, 2)
    ]
    assert sizes == sorted(set(sizes))
    bm25 = [replace(one, score=10 * one.score, score_scale="bm25") for one in given]
    fewer = ProbabilitySelector(enough_tokens=None).select(bm25, step=-1)
    assert (len(fewer.kept), fewer.reasons[-1]) == (20, "6.1 is not among the best 20")
    assert 45 * (len(ProbabilitySelector().select(given).kept) - 1) < ProbabilitySelector().enough_tokens


def test_more_are_enough_where_even_the_best_is_improbable_and_of_much_text():
    def sent(best: float, n: int, share: float = 1 / 3) -> int:
        selector = ProbabilitySelector(enough_tokens=200, enough_share=share, min_keep=1)
        return sum(c.n_tokens or 0 for c in selector.select(candidates(*[best] * n)).kept)

    assert [sent(best, 70) for best in (0.02, 0.1, 0.25, 0.5, 0.75, 1.0)] == [300, 280, 250, 200, 200, 200]
    assert [sent(best, n) for best in (0.02, 0.9) for n in (20, 200)] == [200, 660, 200, 200]
    assert [sent(0.02, 200, share) for share in (0.0, 0.5, 1.0)] == [300, 980, 1960]


@pytest.mark.parametrize(("n", "kept"), [(40, 400), (80, 500), (200, 800), (400, 1200)])
def test_of_little_text_a_share_is_enough_in_place_of_the_tokens(n: int, kept: int):
    selection = ProbabilitySelector(enough_tokens=1200, enough_share=0.4).select(candidates(*[0.9] * n))
    assert sum(c.n_tokens or 0 for c in selection.kept) == kept


@pytest.mark.parametrize(("text", "n_tokens", "kept"), read_cases("selection.json", "enough in any script"))
def test_what_is_enough_says_as_much_in_any_script(text: str, n_tokens: int, kept: int):
    given = [replace(c, text=text) for c in candidates(*[0.9] * 60, n_tokens=n_tokens)]
    assert len(ProbabilitySelector(enough_tokens=200, min_keep=1).select(given).kept) == kept


def test_one_sure_answer_does_not_send_thirty_and_a_scale_without_an_upper_end_no_more_than_enough():
    given = candidates(0.97, *(0.09 - place / 1000 for place in range(29)))
    assert len(ProbabilitySelector().select(given).kept) == ProbabilitySelector().min_keep
    bm25 = [replace(c, score=c.score * 20, score_scale="bm25") for c in candidates(*[1.0] * 40)]
    assert len(ProbabilitySelector(enough_tokens=200).select(bm25).kept) == 20


def test_what_is_said_again_and_again_does_not_raise_the_bar_and_is_not_among_what_is_enough():
    first, *quiet = candidates(0.98, 0.4, 0.05, 0.03)
    loud = replace(first, scores={INSISTENT: 60.0})
    assert kept(ProbabilitySelector(min_keep=0), [loud, *quiet]) == [0.98, 0.4, 0.05]
    assert kept(ProbabilitySelector(min_keep=0), [first, *quiet]) == [0.98, 0.4]
    assert kept(ProbabilitySelector(min_keep=0), [loud]) == [0.98]
    many = [replace(c, scores={INSISTENT: 5.0}) for c in candidates(*[0.9] * 20, n_tokens=45)]
    (evidence,) = (replace(c, doc_id="truth") for c in candidates(0.8, n_tokens=45))
    selector = ProbabilitySelector(enough_tokens=100)
    assert evidence in selector.select([*many, evidence]).kept
    plain = [replace(c, scores={}) for c in many]
    assert evidence not in selector.select([*plain, evidence]).kept


@pytest.mark.parametrize(("settings", "scores", "expected", "reason"), read_cases("selection.json", "worth"))
def test_what_is_worth_its_tokens_and_a_share_of_the_best_is_kept(settings, scores, expected, reason):
    selection = ProbabilitySelector(**settings).select(candidates(*scores))
    assert [c.score for c in selection.kept] == expected
    assert reason in ("", *selection.reasons)


def test_a_few_signs_of_next_to_no_worth_are_not_among_the_best():
    best, *others = candidates(0.8, 0.03, 0.001)
    tiny = [replace(one, text="=> 1", n_tokens=2) for one in others]
    assert kept(ProbabilitySelector(), [best, *others]) == [0.8, 0.03, 0.001]
    assert kept(ProbabilitySelector(), [best, *tiny]) == [0.8]
    assert kept(ProbabilitySelector(), [replace(best, score=0.5), *tiny]) == [0.5, 0.03]


def test_max_tokens_is_filled_and_never_passed_and_ranks_are_refused():
    ranks = [replace(one, score_scale="rank") for one in candidates(*[0.9, 0.3, -0.1] * 50)]
    with pytest.raises(ScoreScaleError, match="rerank first"):
        ProbabilitySelector().select(ranks)
    assert kept(ProbabilitySelector(assume_ratio=True), ranks) == [0.9] * 50
    given = [*candidates(0.9, n_tokens=60), *candidates(0.8, n_tokens=50), *candidates(0.7, n_tokens=40)]
    selector = ProbabilitySelector(share_of_best=0, min_score=0, max_tokens=100, min_keep=0)
    assert kept(selector, given) == [0.9, 0.7]
    assert "do not fit in the 40 left" in selector.select(given).reasons[1]


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
    rows = [
        sentence("The Mill 6:16", 0.01, title="Weekdays"),
        sentence("The Mill 7:41", 0.01, title="Sundays"),
    ]
    bus = "Is there a bus to the Mill on Sundays?"
    assert list(name_bearers(bus, [sentence("On Sundays", 0.02)], rows)) == [(1, "Mill")]
    assert named(sentence("It was 1996.", 0.01), query="What did she do in 1996?") == [(0, "1996")]
    fair, row = sentence("The May fair of 2021 had 3 days.", 0.9), sentence("2021-05-03: Ada", 0.01)
    assert list(name_bearers("Who wrote the report on 3 May 2021?", [fair], [row])) == [(0, "20210503")]


def test_a_row_of_what_the_question_names_takes_the_place_of_a_likelier_one_of_something_else():
    days = [("7:05", "Weekdays", 0.5), ("10:15", "Sundays", 0.001), ("9", "Holidays", 0.001)]
    rows = [sentence(f"Mill {time}", worth, title=day) for time, day, worth in days]
    selection = ProbabilitySelector(min_keep=1).select(rows, query="when is the mill open on sundays")
    assert [one.text for one in selection.kept] == ["Mill 10:15"]


def test_a_row_of_the_section_that_has_the_words_of_the_question_is_not_of_something_else() -> None:
    entries = [("Limit the size of a field.", 0.5, "limit_size"), ("Default: 8190", 0.5, "limit_size")]
    entries += [("Default: 100", 0.1, "limit of the field")]
    rows = [sentence(text, worth, title=title) for text, worth, title in entries]
    selection = ProbabilitySelector(min_keep=1).select(
        rows, query="What is the limit of the size of a field?"
    )
    assert {one.text for one in selection.kept} >= {"Limit the size of a field.", "Default: 8190"}


@pytest.mark.parametrize(
    "query",
    [QUERY.lower(), QUERY.upper(), QUERY.title(), "", "When do I pay it?", "Wo öffnen Sie Ihre Halle heute?"],
)
def test_without_capitals_that_tell_names_there_are_none_and_pronouns_are_no_names(query):
    assert named(COLDPLAY, sentence("I am here. Sie sind in Ihre Stadt.", 0.01), query=query) == []


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
    selection = selector.select(given, query=QUERY, step=1)
    assert COLDPLAY in selection.kept
    assert selection.reasons[3] == "0.08 is not among the best 3"


@pytest.mark.parametrize(("query", "kept"), read_cases("selection.json", "named"))
def test_what_is_said_like_another_but_of_something_else_than_the_question_names_is_left_out(query, kept):
    hours = {"Lyon": "nine", "Lille": "ten", "Nice": "noon"}
    halls = [
        sentence(f"The hall opens at {hour} on weekdays.", 0.5 - n / 10, precise_fields=f"city: {city}")
        for n, (city, hour) in enumerate(hours.items())
    ]
    other = sentence("On holidays everything is shut.", 0.1, precise_fields="city: Brest")
    selection = ProbabilitySelector(min_keep=1).select([*halls, other], query=query)
    assert [one.metadata["precise_fields"].removeprefix("city: ") for one in selection.kept] == kept
