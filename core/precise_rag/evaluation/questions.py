"""Questions for a collection that has none, written by the user's language model.

The model writes each question with a quotation as evidence. A question whose quotation is not in its
passage is dropped and counted.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from precise_rag._progress import progress_bar
from precise_rag.errors import InputError, LLMResponseError
from precise_rag.evaluation.datasets import Evidence, Question, find_quote
from precise_rag.prompts.questions import questions_prompt
from precise_rag.protocols import LLM
from precise_rag.types import Document, Span

_PASSAGE_CHARACTERS = 1500
_SHORTEST_PASSAGE = 200


@dataclass(frozen=True)
class MadeQuestions:
    """Questions made by a language model.

    dropped: reason to count; "unparsed" counts replies, "incomplete" and "evidence not found" questions.
    """

    questions: tuple[Question, ...]
    dropped: dict[str, int]


class _Passage(NamedTuple):
    """A stretch of a document that the model is asked to write questions about."""

    document: Document
    span: Span


def make_questions(
    documents: Sequence[Document],
    llm: LLM,
    n_questions: int,
    *,
    per_passage: int = 2,
    seed: int = 0,
    show_progress: bool = False,
) -> MadeQuestions:
    """Make at most `n_questions` questions from passages of the documents.

    documents: the collection.
    llm: the language model.
    n_questions: passages are tried until there are so many, or no passage is left.
    per_passage: questions to ask for at once.
    seed: of the order of the passages.

    Raises InputError if no document is long enough. Errors of the model, such as a lost connection, are
    passed on.
    """
    passages = [p for document in documents for p in _passages(document)]
    if not passages:
        raise InputError(
            f"no document has a passage of {_SHORTEST_PASSAGE} characters to ask about; add longer documents"
        )
    order = np.random.default_rng(seed).permutation(len(passages))
    made: dict[str, Question] = {}
    dropped: Counter[str] = Counter()
    with progress_bar(shown=show_progress, total=n_questions, desc="questions") as bar:
        for row in order.tolist():
            if len(made) >= n_questions:
                break
            for record in _ask(llm, passages[row], per_passage, dropped):
                question = _checked(record, passages[row], dropped)
                if question is not None and len(made) < n_questions:
                    made[question.id] = question
                    bar.update()
    return MadeQuestions(tuple(made.values()), dict(dropped))


def to_record(question: Question) -> dict[str, Any]:
    """Return a question as a record that `load_dataset` reads."""
    return {
        "id": question.id,
        "question": question.text,
        "answers": list(question.answers),
        "doc_id": question.doc_id,
        "evidence": [place._asdict() for place in question.evidence],
        **question.metadata,
    }


def _passages(document: Document) -> list[_Passage]:
    """Split a document into passages that end with a paragraph or a sentence where possible."""
    passages, start, text = [], 0, document.text
    while start < len(text):
        end = min(start + _PASSAGE_CHARACTERS, len(text))
        if end < len(text):
            end = max(text.rfind("\n\n", start, end), text.rfind(". ", start, end) + 1, start) or end
            end = end if end > start else min(start + _PASSAGE_CHARACTERS, len(text))
        if len(text[start:end].strip()) >= _SHORTEST_PASSAGE:
            passages.append(_Passage(document, Span(start, end)))
        start = end
    return passages


def _ask(llm: LLM, passage: _Passage, n_questions: int, dropped: Counter[str]) -> list[dict[str, Any]]:
    prompt = questions_prompt(passage.document.text[slice(*passage.span)], n_questions=n_questions)
    try:
        reply = llm.complete(prompt.messages, schema=prompt.schema).text
        records = json.loads(reply[reply.index("{") : reply.rindex("}") + 1])["questions"]
        return [record for record in records if isinstance(record, dict)]
    except (ValueError, KeyError, TypeError, LLMResponseError):
        dropped["unparsed"] += 1
        return []


def _checked(record: dict[str, Any], passage: _Passage, dropped: Counter[str]) -> Question | None:
    text, answer, quote = (str(record.get(key) or "").strip() for key in ("question", "answer", "quote"))
    if not text or not answer:
        dropped["incomplete"] += 1
        return None
    place = find_quote(passage.document.text[slice(*passage.span)], quote)
    if place is None:
        dropped["evidence not found"] += 1
        return None
    start, end = passage.span.start + place.start, passage.span.start + place.end
    key = blake2b(f"{passage.document.id}\0{start}\0{text}".encode(), digest_size=6).hexdigest()
    evidence = (Evidence(passage.document.id, start, end),)
    return Question(key, text, evidence, (answer,), passage.document.id)
