"""What is cut from texts: sentences, and tables and code with their head, lead-in and indent."""

from dataclasses import replace
from pydoc_data.topics import topics

import pytest

from precise_rag import Candidate, PreciseRAG, Trace
from precise_rag.context import context_passages
from precise_rag.errors import InputError
from precise_rag.evidence import N_FOUND, EvidenceExtractor
from precise_rag.evidence.extractor import FROM_TEXTS
from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.rerank import load_reranker
from precise_rag.selection import ProbabilitySelector
from precise_rag.titles import joined_titles, new_sections
from precise_rag.types import Selection, best_first
from support.documents import read_cases
from support.scored import Scored

PUMP = "The pump is blue. It needs oil.\n\nService it every year. Ask Ada first. The shed is far away."
SEA = "Fish swim. Boats float."


def by_word(word: str) -> Scored:
    """Gives 0.9 to sentences with the word, and 0.001 to the others."""
    return Scored(lambda text: 0.9 if word in text else 0.001)


def piece(doc_id: str, text: str, start: int = 0, score: float = 0.5) -> Candidate:
    return Candidate(doc_id, start, start + len(text), text, score, "cosine", metadata={"of": doc_id})


def extract(word: str, *pieces: Candidate, **settings) -> Selection:
    selector = ProbabilitySelector(**{"min_score": 0.9, "min_keep": 0, **settings})
    return EvidenceExtractor(by_word(word), selector).extract("When to service the pump?", pieces)


def test_the_excerpt_is_exact_and_keeps_the_metadata():
    found = extract("Service", piece("sea", SEA), piece("pump", PUMP, start=100))
    (excerpt,) = found.kept
    assert excerpt.text == "Service it every year." == PUMP[excerpt.start - 100 : excerpt.end - 100]
    assert (excerpt.doc_id, excerpt.metadata) == ("pump", {"of": "pump"})
    assert excerpt.score > 0.5
    assert excerpt.scores["retrieval"] == 0.5


def test_splitting_keeps_what_is_known_of_the_text_and_the_headings_in_it():
    text = "Keep it dry.\n\n## Pump M-7\n\nChange the oil every month.\n\n## Saw\n\nSharpen it."
    whole = replace(piece("shed", text), metadata={"title": "Shed"})
    above = {s.text: s.above for s in split_into_sentences(whole).sentences}
    assert above["Keep it dry."] == above["## Pump M-7"] == ("Shed",)
    assert above["Change the oil every month."] == ("Shed", "Pump M-7")
    (excerpt,) = extract("Change", whole, min_score=0.01).kept
    assert excerpt.text.removeprefix("## Pump M-7\n\n") == "Change the oil every month."
    given = replace(piece("sea", f"  {SEA}\n", start=7), scores={"dense": 0.3})
    text, sentences = split_into_sentences(given)
    assert text == SEA
    assert [(s.text, s.start, s.end) for s in sentences] == [("Fish swim.", 9, 19), ("Boats float.", 20, 32)]
    assert all(s.scores == {"dense": 0.3} and s.score == given.score for s in sentences)


def test_sentences_that_follow_each_other_are_one_excerpt_and_excerpts_are_in_the_order_of_the_text():
    whole = extract("", piece("pump", PUMP))
    assert [one.text for one in whole.kept] == [PUMP]
    assert "4 more sentences came along" in whole.reasons[0]
    first, second = PUMP[:31], PUMP[33:]
    found = extract("", piece("pump", second, start=33), piece("pump", first), piece("sea", SEA, score=0.9))
    places = [(s.doc_id, s.start, s.end) for s in found.kept]
    assert places[:2] == [("pump", 0, 31), ("pump", 33, len(PUMP))]


def test_limits_and_texts_without_relevant_sentences():
    found = extract("", piece("pump", PUMP), max_tokens=12)
    assert 0 < sum(s.n_tokens or 99 for s in found.kept) <= 12
    assert extract("nowhere", piece("pump", PUMP)).kept == ()
    assert len(extract("nowhere", piece("pump", PUMP), min_keep=1).kept) == 1
    assert extract("x").kept == ()
    assert extract("x", piece("blank", " \n ")).kept == ()
    extractor = EvidenceExtractor("packaged")
    for query, texts in ((" ", [piece("sea", SEA)]), ("x", [SEA])):
        with pytest.raises(InputError, match="must"):
            extractor.extract(query, texts)


def test_what_is_in_several_texts_is_sent_once_and_texts_at_one_place_stay_apart_if_they_differ():
    found = extract("", piece("pump", "Ada has it."), piece("pump", "Bo has it…"))
    assert [(s.doc_id, s.text) for s in found.kept] == [("pump", "Ada has it."), ("pump", "Bo has it…")]
    found = extract("Service", piece("pump", PUMP[:55]), piece("pump", PUMP[33:], start=33))
    assert [s.text for s in found.kept] == ["Service it every year."]
    found = extract("Service", piece("pump", PUMP), piece("copy", "Service it every year. Lock the shed."))
    assert [s.doc_id for s in found.kept] == ["pump"]
    others = [d for d in found.decisions if "Service" in d.candidate.text and not d.kept]
    assert [(d.candidate.doc_id, d.reason) for d in others] == [("copy", "repeats pump:33-55")]
    found = extract("Service", piece("a", "Service it every year.\n"), piece("b", f"# Lamp\n\n{PUMP[33:55]}"))
    assert [(s.doc_id, s.above) for s in found.kept] == [("b", ("Lamp",))]


@pytest.mark.parametrize(
    ("probability", "last"), [(0.9, "House: A"), (0.9, "Phone: {0}"), (0.03, "House: A")]
)
def test_a_record_is_sent_with_lines_that_others_have_too_and_that_had_no_place(
    probability: float, last: str
):
    card = f"Name: {{0}}\nRoom: {{0}}\nDesk: {{0}}\n{last}"
    staff = "\n\n".join(map(card.format, range(100)))
    reranker = Scored(lambda text: probability if text == "Name: 77" else 0.001)
    selector = ProbabilitySelector(min_score=0, share_of_best=0.9, min_keep=0)
    found = EvidenceExtractor(reranker, selector).extract("Who is 77?", [piece("staff", staff)])
    assert [one.text for one in found.kept] == [card.format(77)]


def test_a_text_that_repeats_the_question_leaves_the_others_their_part():
    loud = piece("loud", "\n".join(f"To service the pump is the question {n} of all." for n in range(300)))
    truth = piece("truth", "It is done in May, when service is cheap.")
    found = extract("service", loud, truth, share_of_best=0, min_score=0.01, max_tokens=None)
    assert "truth" in [excerpt.doc_id for excerpt in found.kept]
    assert any("had their share of the 200 places" in d.reason for d in found.decisions if not d.kept)


def test_the_pipeline_over_texts_sends_what_the_extractor_cuts_from_them() -> None:
    """One number of found sentences, one path: over texts with more sentences than either looks at."""
    pages = {page: topics[page] for page in ("try", "while", "with", "class", "function", "import")}
    texts = [
        Candidate(
            page, start, min(start + 4000, len(text)), text[start : start + 4000], -float(start), "rank"
        )
        for page, text in pages.items()
        for start in range(0, len(text), 4000)
    ]

    class Store:
        def search(self, query: str, top_k: int) -> list[Candidate]:
            return texts

    query, packaged = "When is the else clause of a try statement executed?", load_reranker("packaged")
    cut = EvidenceExtractor(packaged).extract(query, best_first(texts))
    rag = PreciseRAG(Store(), reranker=packaged, redundancy=None, selector=FROM_TEXTS)
    trace = Trace(query)
    kept = context_passages(rag.retrieve(query, trace=trace))
    found = {stage.name: stage.selection for stage in trace.stages}["sentences"]
    assert len(found.kept) == N_FOUND < len(found.decisions)
    places = [(one.doc_id, one.start, one.end, one.text) for one in kept]
    assert places == [(one.doc_id, one.start, one.end, one.text) for one in cut.kept]


def read(text: str, word: str) -> list[str]:
    """What a model reads of a text: each excerpt below what stands above it."""
    excerpts = extract(word, piece("d", text), min_score=0.5).kept
    assert all(text[one.start : one.end] == one.text for one in excerpts)
    above = map(joined_titles, new_sections(excerpts))
    return [f"{titles}\n{one.text}".strip("\n") for one, titles in zip(excerpts, above, strict=True)]


LONG = "of willow and of oak, as they were made at the river for as long as anyone can think back"


@pytest.mark.parametrize("table", read_cases("evidence.json", "tables"))
def test_a_row_of_a_long_table_carries_the_head_once(table: str) -> None:
    (shown,) = read(table, "item7")
    assert shown.count("Name") == shown.count("Made") == 1
    assert "Name | Made" in shown.splitlines()[0]
    assert "item7" in shown
    assert LONG in shown
    assert "item3" not in shown


@pytest.mark.parametrize(("text", "indent"), read_cases("evidence.json", "code"))
def test_code_is_sent_whole_with_its_indent_and_its_lead_in(text: str, indent: int) -> None:
    shown = "\n".join(read(text, "lift(trap)"))
    assert "Run it so:" in shown
    first, *_, last = (line for line in shown.splitlines() if "return trap" in line or "def lift" in line)
    assert len(first) - len(first.lstrip()) == indent
    assert "return trap" in last


@pytest.mark.parametrize("text", read_cases("evidence.json", "options"))
def test_an_option_is_sent_with_its_meaning(text: str) -> None:
    shown = "\n".join(read(text, "one trap"))
    assert "--trap" in shown
    assert "Lift one trap." in shown
