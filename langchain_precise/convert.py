"""Conversion between LangChain documents and core values.

    to_core_documents   documents → core documents, for an index
    to_candidates       documents → candidates, for a stage of the core
    from_candidate      a candidate that an index found → a new document
    from_selection      the kept candidates of a selection → copies of their documents

A result carries, beside the metadata of its source:

    relevance_score          float, higher is better
    doc_id                   id of the document it was cut from
    start_index, end_index   its place there: source.page_content[start_index:end_index]
    precise_rag              the facts of `precise_rag.facts`

Documents passed in are never changed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from langchain_core.documents import Document

from precise_rag.facts import (
    FACTS_KEY,
    copied,
    distinct_names,
    in_order,
    known_scores,
    noted_fields,
    noted_scale,
    read_facts,
    write_facts,
)
from precise_rag.types import Candidate, ScoreScale, Selection, Span, with_scores
from precise_rag.types import Document as CoreDocument

SCORE = "relevance_score"
DOC_ID = "doc_id"
START = "start_index"
END = "end_index"


def to_core_documents(documents: Iterable[Document]) -> list[CoreDocument]:
    """Return a core document for each document.

    The id of a document without one is a hash of its text. If an id comes again, `#2`, `#3` … is added.
    """
    documents = list(documents)
    names = distinct_names((document.id or _content_id(document), None) for document in documents)
    return [
        CoreDocument(name, document.page_content, document.metadata)
        for name, document in zip(names, documents, strict=True)
    ]


def to_candidates(documents: Iterable[Document], score_scale: ScoreScale | None = None) -> list[Candidate]:
    """Return one candidate per document, in the order given, each with an id of its own.

    score_scale: the scale of a `relevance_score` that has no facts. If any score is of unknown scale,
    if the scales differ, or if any score is missing and no scale is given, the order given replaces all
    scores, on the "rank" scale. Other documents whose score is missing or no finite number rank last,
    see `with_scores`.
    """
    documents = list(documents)
    facts = [_facts(document) for document in documents]
    given = [document.metadata.get(SCORE) for document in documents]
    scores = known_scores(zip(given, facts, strict=True), are_required=score_scale is not None)
    scales = {
        None if known is None else noted_scale(fact, score) or score_scale
        for known, score, fact in zip(scores, given, facts, strict=True)
        if known is None or not math.isnan(known)
    }
    scale = scales.pop() if len(scales) == 1 else None
    candidates = [
        Candidate(
            doc_id=doc_id,
            start=span.start,
            end=span.end,
            text=document.page_content,
            score=0.0,
            score_scale=scale or "rank",
            metadata=document.metadata,
            **noted_fields(fact),
        )
        for document, fact, (doc_id, span) in zip(documents, facts, _places(documents), strict=True)
    ]
    return with_scores(candidates, scores if scale else in_order(scores))


def from_candidate(candidate: Candidate, reason: str = "") -> Document:
    """Return a new document for a candidate that an index found.

    reason: why a selection kept it, if one did.
    """
    metadata = {
        **copied(candidate.metadata),
        DOC_ID: candidate.doc_id,
        START: candidate.start,
        END: candidate.end,
        SCORE: candidate.score,
        FACTS_KEY: write_facts(candidate, reason),
    }
    return Document(id=candidate.id, page_content=candidate.text, metadata=metadata)


def from_selection(selection: Selection, documents: Sequence[Document]) -> list[Document]:
    """Return copies of the kept documents, best first, with their scores and reasons.

    documents: those that `to_candidates` was given, in the same order. A "rank" score that only
    repeats the order of documents without scores is not written.
    """
    sources = dict(zip(_places(documents), documents, strict=True))
    kept = []
    for _, candidate, is_kept, reason in selection.decisions:
        if is_kept:
            document = sources[candidate.doc_id, Span(candidate.start, candidate.end)]
            metadata = copied(document.metadata)
            if SCORE in metadata or candidate.score_scale != "rank":
                metadata[SCORE] = candidate.score
            metadata[FACTS_KEY] = write_facts(candidate, reason)
            kept.append(document.model_copy(update={"metadata": metadata}))
    return kept


def piece_span(document: Document) -> Span | None:
    """Return the document's place in its source, or None if it names none or one of another length."""
    start, end = document.metadata.get(START), document.metadata.get(END)
    if isinstance(start, int) and isinstance(end, int) and end - start == len(document.page_content):
        return Span(start, end)
    return None


def _facts(document: Document) -> Mapping[str, Any]:
    """Return the facts about this very document; none if it has been cut since they were written."""
    is_cut = START in document.metadata and piece_span(document) is None
    return {} if is_cut else read_facts(document.metadata)


def _places(documents: Iterable[Document]) -> list[tuple[str, Span]]:
    """Return the place of each document; `#2`, `#3` … is added to the id if a place comes again."""
    places = [_place(document) for document in documents]
    return [(name, span) for name, (_, span) in zip(distinct_names(places), places, strict=True)]


def _place(document: Document) -> tuple[str, Span]:
    """Return the document's source and its span there, or the document itself if that is not known."""
    span = piece_span(document)
    if span is not None and DOC_ID in document.metadata:
        return str(document.metadata[DOC_ID]), span
    return document.id or _content_id(document), Span(0, len(document.page_content))


def _content_id(document: Document) -> str:
    text = document.page_content.encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=8).hexdigest()
