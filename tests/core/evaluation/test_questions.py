"""Questions written by a language model."""

import json

import pytest

from precise_rag.errors import InputError
from precise_rag.evaluation.questions import make_questions
from precise_rag.testing import ScriptedLLM
from precise_rag.types import Document, Message
from support.village import TOPICS, dataset


def test_questions_are_made_checked_and_counted() -> None:
    def reply(messages: list[Message]) -> str:
        passage = messages[-1].content
        if "The mill" in passage:
            return "no JSON here"
        topic = next((t for t in TOPICS if f"The {t} was" in passage), None)
        records = [{"question": "Q?", "answer": "A", "quote": "never written"}]
        if topic:
            quote = f"the {topic} was   built"
            records.append({"question": f"Who built the {topic}?", "answer": f"{topic}son", "quote": quote})
        records.append({"question": "", "answer": "A", "quote": "x"})
        return f"Here: ```{json.dumps({'questions': records})}```"

    documents = dataset().documents
    made = make_questions(documents, ScriptedLLM(reply), 50, seed=1)
    assert {q.doc_id for q in made.questions} == set(TOPICS) - {"mill"}
    texts = {d.id: d.text for d in documents}
    for question in made.questions:
        (place,) = question.evidence
        assert texts[place.doc_id][place.start : place.end] == f"The {question.doc_id} was built"
    assert made.dropped == {"unparsed": 1, "evidence not found": 7, "incomplete": 7}
    few = make_questions(documents, ScriptedLLM(reply), 2, seed=1)
    assert len(few.questions) == 2
    assert few.questions == make_questions(documents, ScriptedLLM(reply), 2, seed=1).questions
    with pytest.raises(InputError, match="no document"):
        make_questions([Document("x", "short")], ScriptedLLM([]), 1)
