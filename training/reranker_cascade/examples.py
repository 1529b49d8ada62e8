"""Training examples of the cross-encoder: questions with a few candidates, some of them relevant.

The questions are human ones, and weak ones made from training documents. The candidates are those of the
library's own retrieval.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.datasets import Evidence, Question, holds_evidence
from precise_rag.protocols import Encoder
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pairs import Piece
from precise_rag.types import Candidate, Document
from training.candidate_lists import (
    N_CANDIDATES,
    CandidateList,
    Collection,
    as_candidate_list,
    calibrates,
    in_their_texts,
    index_of,
)
from training.question_rules import as_typed
from training.weak_questions import WeakQuestion, asked_of, documents_of, texts_of
from training.word_chunks import WordChunks

N_SHOWN = {"sentences": 6, "bm25": 5, "passages": 4, "dense": 4}
"""Candidates of one example, by kind of list; fewer if there are fewer."""

MOST_RELEVANT = 3
"""Relevant candidates of one example, at most."""

TOP = 20
"""Two thirds of the negatives are drawn from the candidates that the cascade would read: this many that
the packaged reranker puts first. The rest is drawn from the whole list."""

HYBRID = 3
"""One of this many collections of a set is searched in all ways; the others by word alone."""

CHARACTERS = (600_000, 60_000, 600_000)
"""Of the collections of a set, in turn; the second of three is searched in all ways."""

QUESTIONS, WEAK_QUESTIONS = 900, 240
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


class Example(NamedTuple):
    """A question with some candidates, and which are relevant.

    pieces: the candidates with the text around them, where it is known; above each is its document's title.
    kind: of list. source: the set of the question, such as "train/nq", or "weak/" and the documents' source.
    """

    question: str
    pieces: tuple[Piece, ...]
    relevant: np.ndarray
    kind: str
    source: str


def shown(
    question: str,
    candidates: Sequence[Candidate],
    relevant: np.ndarray,
    kind: str,
    source: str,
    random: np.random.Generator,
    *,
    unanswered: bool = False,
) -> Example | None:
    """Draw the candidates of an example from a list; None without two others than the relevant ones.

    unanswered: whether none may be relevant; otherwise, None if none is.
    """
    good, bad = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    if (not len(good) and not unanswered) or len(bad) < 2:
        return None
    rank = np.argsort(np.argsort(-packaged_reranker().score(question, candidates), kind="stable"))
    n_shown = N_SHOWN[kind]
    good = random.permutation(good)[: min(MOST_RELEVANT, n_shown // 2)]
    near = random.permutation(bad[rank[bad] < TOP])[: -(-(n_shown - len(good)) * 2 // 3)]
    far = random.permutation(np.setdiff1d(bad, near))[: n_shown - len(good) - len(near)]
    rows = np.concatenate([good, near, far])
    pieces = tuple(
        Piece(one.text, one.metadata.get("title") or "", one.before, one.after)
        for one in (candidates[row] for row in rows)
    )
    return Example(question, pieces, relevant[rows], kind, source)


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


def weak_examples(
    records: Sequence[dict], source: str, number: int, encoder: Encoder, random: np.random.Generator
) -> Iterator[Example]:
    """Yield examples of a collection of training documents, with questions made from them."""
    texts, is_hybrid = texts_of(records), number % HYBRID == HYBRID - 1
    searches = _searches(documents_of(records), encoder, hybrid=is_hybrid)
    for one in asked_of(records, source, WEAK_QUESTIONS, random):
        is_short = one.asked or random.random() < 0.6
        kind = "sentences" if is_short else "passages" if is_hybrid else "bm25"
        query = as_typed(one.question, random)
        found, relevant = _judged(one, query, texts[one.doc_id], searches[kind])
        if example := shown(query, found, relevant, kind, f"weak/{source}", random):
            yield example


def _judged(one: WeakQuestion, query: str, text: str, search: Search) -> tuple[list[Candidate], np.ndarray]:
    """Candidates for a question and which are relevant; without the question itself."""
    question = Question("", one.question, (Evidence(one.doc_id, one.start, one.end),))
    found = list(search(query, None))
    if not any(holds_evidence(c, question.evidence) for c in found):
        answer = text[one.start : one.end][:400]
        missed = [c for c in search(answer, None)[:5] if holds_evidence(c, question.evidence)]
        found = [*missed, *found]
    found = one.without_itself(found)
    return found, np.array([holds_evidence(c, question.evidence) for c in found], dtype=bool)


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
