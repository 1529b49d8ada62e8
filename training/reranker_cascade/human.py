"""Examples of human questions, with negatives of the library's own retrieval."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Question
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document
from training.candidate_lists import (
    N_CANDIDATES,
    CandidateList,
    as_candidate_list,
    calibrates,
    in_their_texts,
    index_of,
)
from training.human_questions import Collection
from training.question_rules import as_typed
from training.reranker_cascade.examples import Example, shown
from training.word_chunks import WordChunks

HYBRID = 3
"""One of this many collections of a set is searched in all ways; the others by word alone."""

CHARACTERS = (600_000, 60_000, 600_000)
"""Of the collections of a set, in turn; the second of three is searched in all ways."""

QUESTIONS = 900
"""Questions of a collection, at most."""

OWN_DOCUMENT = ("train/cuad", "train/friendsqa")
"""Sets whose questions do not say which document they are about: it alone is searched."""

SHARES = {"sentences": 0.55, "bm25": 0.2, "passages": 0.17, "dense": 0.08}
"""How often a question is asked in each way."""

REGION = 400
"""Characters of evidence from which on it is a part of the document that says what is asked, not the sentence
that does: its sentences are shown half as often."""

EMPTIED = 0.06
"""Share of the questions whose evidence is left out, so that nothing answers them."""

ANSWER, ADDED = 300, 5
"""Where the search misses the evidence, this many characters of the answer are searched for, and so many of
the best that are found are added."""

N_KEPT = 24
"""Lists kept out of training, of each collection and kind, at most."""

Search = Callable[..., list[Candidate]]
"""Takes a query, and the id of the document that alone is searched, or None."""


def is_hybrid(collection: Collection) -> bool:
    """Check whether a collection is searched in all ways."""
    return collection.number % HYBRID == 1


def examples_and_kept(
    collection: Collection, encoder: Encoder, random: np.random.Generator
) -> tuple[list[Example], dict[str, list[CandidateList]]]:
    """Return the examples of a collection, and its lists kept out of training, by kind.

    Each question is asked in one way, and some are made sloppy. Lists are kept of collections that are
    searched in all ways; questions about documents kept out are dropped in the others.
    """
    examples: list[Example] = []
    searches = _searches(collection.documents, encoder, hybrid=is_hybrid(collection))
    kept: dict[str, list[CandidateList]] = {kind: [] for kind in searches}
    for row in random.permutation(len(collection.questions))[:QUESTIONS]:
        question = collection.questions[row]
        kind = _drawn_kind(question, list(searches), random)
        within = question.group if collection.name in OWN_DOCUMENT else None
        search = partial(searches[kind], doc_id=within)
        if not calibrates(question.group):
            asked = replace(question, text=as_typed(question.text, random))
            examples += _example(_with_evidence(asked, search), kind, collection.name, random)
        elif is_hybrid(collection) and question.evidence and len(kept[kind]) < N_KEPT:
            kept[kind].append(as_candidate_list(question, search(question.text)))
    return examples, {kind: lists for kind, lists in kept.items() if lists}


def _with_evidence(question: Question, search: Callable[[str], list[Candidate]]) -> CandidateList:
    """The list of a question; if it misses the evidence, with what a search for that finds."""
    one = as_candidate_list(question, search(question.text))
    if one.relevant.any() or not question.answers or not question.evidence:
        return one
    found = as_candidate_list(question, search(question.answers[0][:ANSWER]))
    there = {candidate.id for candidate in one.candidates}
    more = [c for c in found.candidates[:ADDED] if c.id not in there]
    return as_candidate_list(question, [*one.candidates, *more])


def _example(one: CandidateList, kind: str, source: str, random: np.random.Generator) -> Iterator[Example]:
    """The example of a list, if there is one; of some lists, without what is relevant."""
    if one.relevant.any() and random.random() < EMPTIED:
        others = [c for c, relevant in zip(one.candidates, one.relevant, strict=True) if not relevant]
        one = one._replace(candidates=others, relevant=np.zeros(len(others), dtype=bool), evidence=())
    example = shown(
        one.question, one.candidates, one.relevant, kind, source, random, unanswered=not one.evidence
    )
    if example:
        yield example


def _drawn_kind(question: Question, kinds: Sequence[str], random: np.random.Generator) -> str:
    shares = np.array([SHARES[kind] for kind in kinds])
    if any(one.end - one.start >= REGION for one in question.evidence):
        shares[kinds.index("sentences")] /= 2
    return kinds[random.choice(len(kinds), p=shares / shares.sum())]


def _searches(documents: Sequence[Document], encoder: Encoder, *, hybrid: bool) -> dict[str, Search]:
    """Searches by the kind of list that they make."""
    if not hybrid:
        chunks = {"sentences": "sentences", "bm25": "100 tokens", "passages": "200 tokens"}
        found = {kind: _search(WordChunks(documents, encoder, n)) for kind, n in chunks.items()}
        return _in_context(documents, found)
    built = {kind: index_of(documents, kind, encoder) for kind in SHARES}
    return _in_context(
        documents, {kind: _search(index, **settings) for kind, (index, settings) in built.items()}
    )


def _search(index: Any, **settings: Any) -> Search:
    """The search of an index, in the documents of one id if it is given."""

    def search(query: str, doc_id: str | None) -> list[Candidate]:
        within = {"filter": {"id": doc_id}} if doc_id else {}
        return list(index.search(query, N_CANDIDATES, **settings, **within))

    return search


def _in_context(documents: Sequence[Document], searches: Mapping[str, Search]) -> dict[str, Search]:
    """The same searches, of which that for sentences tells the text around them."""
    texts = {document.id: document.text for document in documents}
    plain = searches["sentences"]

    def sentences(query: str, doc_id: str | None) -> list[Candidate]:
        return in_their_texts(plain(query, doc_id), texts)

    return {**searches, "sentences": sentences}
