"""Weak examples: questions made from training documents, with negatives of the library's own retrieval."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.harness.datasets import Evidence, Question, holds_evidence
from precise_rag.index import HybridIndex
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document
from training.candidate_lists import in_their_texts
from training.question_rules import as_typed
from training.reranker_cascade.examples import Example, shown
from training.weak_questions import WeakQuestion, asked_of, documents_of, texts_of
from training.word_chunks import WordChunks

QUESTIONS = 240
"""Questions of a collection, at most."""

HYBRID = 3
"""One of this many collections is searched by meaning and by word; the others by word alone."""

_FOUND = 40

Search = Callable[[str], list[Candidate]]


def weak_examples(
    records: Sequence[dict], source: str, number: int, encoder: Encoder, random: np.random.Generator
) -> Iterator[Example]:
    """Yield examples of a collection."""
    texts = texts_of(records)
    searches = _searches(documents_of(records), encoder, hybrid=number % HYBRID == HYBRID - 1)
    kinds = list(searches)
    for one in asked_of(records, source, QUESTIONS, random):
        kind = kinds[0] if one.asked or random.random() < 0.6 else kinds[1]
        query = as_typed(one.question, random)
        found, relevant = _judged(one, query, texts[one.doc_id], searches[kind])
        if kind == "sentences":
            found = in_their_texts(found, texts)
        if example := shown(query, found, relevant, kind, f"weak/{source}", random):
            yield example


def _searches(documents: Sequence[Document], encoder: Encoder, *, hybrid: bool) -> dict[str, Search]:
    """Searches by the kind of list that they make."""
    if hybrid:
        index = HybridIndex.build(documents, encoder)
        return {
            "sentences": lambda query: index.search(query, _FOUND, returns="sentence"),
            "passages": lambda query: index.search(query, _FOUND, returns="passage"),
        }
    sentences = WordChunks(documents, encoder, "sentences")
    chunks = WordChunks(documents, encoder, "100 tokens")
    return {
        "sentences": lambda query: sentences.search(query, _FOUND),
        "bm25": lambda query: chunks.search(query, _FOUND),
    }


def _judged(one: WeakQuestion, query: str, text: str, search: Search) -> tuple[list[Candidate], np.ndarray]:
    """Candidates for a question and which are relevant; without the question itself."""
    question = Question("", one.question, (Evidence(one.doc_id, one.start, one.end),))
    found = list(search(query))
    if not any(holds_evidence(c, question.evidence) for c in found):
        answer = text[one.start : one.end][:400]
        missed = [c for c in search(answer)[:5] if holds_evidence(c, question.evidence)]
        found = [*missed, *found]
    found = one.without_itself(found)
    return found, np.array([holds_evidence(c, question.evidence) for c in found], dtype=bool)
