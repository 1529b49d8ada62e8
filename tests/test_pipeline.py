import asyncio

import pytest

from precise_rag import Document, GradientSelector, PreciseRAG
from precise_rag.errors import InputError
from precise_rag.testing import HashEncoder

DOCUMENTS = [
    Document(
        "harbour",
        "The harbour froze in January. Fishing boats stayed on land until spring.\n\n"
        "A ferry brings flour and letters twice a week. The captain is called Ilse Brandt.",
        {"year": 1931},
    ),
    Document(
        "school",
        "The school has two rooms. Forty children learn there in winter.\n\n"
        "In summer the teacher repairs the roof.",
    ),
    Document("copy", "The captain is called Ilse Brandt."),
]


@pytest.fixture(scope="module")
def rag():
    return PreciseRAG.from_documents(
        DOCUMENTS, encoder=HashEncoder(), selector=GradientSelector(min_k=1, ratio=0.3)
    )


def test_the_answering_sentence_comes_first_with_its_exact_place(rag):
    best = rag.retrieve("Who is the captain of the ferry?").kept[0]
    source = next(document for document in DOCUMENTS if document.id == best.doc_id)
    assert source.text[best.start : best.end] == best.text
    assert "Ilse Brandt" in best.text
    assert best.score_scale == "probability"


def test_every_candidate_has_one_decision_and_repeats_are_named(rag):
    selection = rag.retrieve("Who is the captain of the ferry?")
    ids = [decision.candidate.id for decision in selection.decisions]
    assert len(set(ids)) == len(ids)
    assert [decision.rank for decision in selection.decisions] == list(range(1, len(ids) + 1))
    assert all(selection.reasons)


def test_without_a_language_model_the_answer_is_the_context_and_says_so(rag):
    answer = rag.answer("Who is the captain of the ferry?")
    assert answer.kind == "context"
    assert answer.text == "\n\n".join(candidate.text.strip() for candidate in answer.selection.kept)
    assert "no language model" in answer.note


def test_async_and_sync_agree(rag):
    question = "When did the harbour freeze?"
    assert asyncio.run(rag.aretrieve(question)) == rag.retrieve(question)
    assert asyncio.run(rag.aanswer(question)).text == rag.answer(question).text


def test_a_blank_query_is_an_error(rag):
    with pytest.raises(InputError, match="query is empty"):
        rag.retrieve("  ")
