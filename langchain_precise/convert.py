"""LangChain documents to the core's values and back.

What a result carries in its metadata, beside what its source document had:

    relevance_score          python float, higher is better
    doc_id                   id of the document it was cut from
    start_index, end_index   its place there: source.page_content[start_index:end_index]
    precise_rag              what the core knows of it, as JSON: score, score_scale, scores,
                             n_tokens, passage and, after a selection, the reason it was kept

Nothing here changes the documents it is given.
"""

import copy
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from langchain_core.documents import Document

from precise_rag import types as core

SCORE = "relevance_score"
DOC_ID = "doc_id"
START = "start_index"
END = "end_index"
FACTS = "precise_rag"


def to_core_documents(documents: Iterable[Document]) -> list[core.Document]:
    """The same documents for the core.

    A document without an id gets a hash of its text as its id, and `#2`, `#3` … behind it where
    the same text comes again.
    """
    seen: Counter[object] = Counter()
    return [
        core.Document(
            document.id or _numbered(_content_id(document), document.page_content, seen),
            document.page_content,
            document.metadata,
        )
        for document in documents
    ]


def to_candidates(
    documents: Iterable[Document], score_scale: core.ScoreScale | None = None
) -> list[core.Candidate]:
    """One candidate per document, in the order given, each with an id of its own.

    Scores are the documents' own where all have one on one scale: the scale noted by the
    component of ours that gave the score, else `score_scale`. Scores that are missing, of unknown
    meaning or of several scales say nothing together: then the order given is the score, on the
    "rank" scale.
    """
    documents = list(documents)
    known = [_known_score(document, score_scale) for document in documents]
    comparable = len({scale for _, scale in known}) == 1
    seen: Counter[object] = Counter()
    candidates = []
    for position, (document, (score, scale)) in enumerate(zip(documents, known, strict=True)):
        doc_id, start, end = place = _place(document)
        facts = _facts(document)
        candidates.append(
            core.Candidate(
                doc_id=_numbered(doc_id, place, seen),
                start=start,
                end=end,
                text=document.page_content,
                score=score if comparable and scale else float(-position),
                score_scale=scale if comparable and scale else "rank",
                n_tokens=facts.get("n_tokens"),
                passage=core.Span(*facts["passage"]) if "passage" in facts else None,
                scores=facts.get("scores", {}),
                metadata=document.metadata,
            )
        )
    return candidates


def to_document(candidate: core.Candidate, reason: str = "") -> Document:
    """A new document for a candidate that an index found or a selection kept."""
    metadata = {
        **copy.deepcopy(dict(candidate.metadata)),
        DOC_ID: candidate.doc_id,
        START: candidate.start,
        END: candidate.end,
        SCORE: candidate.score,
        FACTS: facts_of(candidate, reason),
    }
    return Document(id=candidate.id, page_content=candidate.text, metadata=metadata)


def kept_documents(
    selection: core.Selection, documents: Sequence[Document], candidates: Sequence[core.Candidate]
) -> list[Document]:
    """Copies of the documents that a selection kept, best first, with their scores and reasons.

    `candidates` are those made of `documents`, in the same order. Where the "rank" scale only
    repeats the order of documents that have no score, none is written.
    """
    source = {c.id: document for c, document in zip(candidates, documents, strict=True)}
    kept = []
    for decision in selection.decisions:
        if decision.kept:
            document = source[decision.candidate.id]
            metadata = copy.deepcopy(document.metadata)
            if SCORE in metadata or decision.candidate.score_scale != "rank":
                metadata[SCORE] = decision.candidate.score
            metadata[FACTS] = facts_of(decision.candidate, decision.reason)
            kept.append(document.model_copy(update={"metadata": metadata}))
    return kept


def piece_span(document: Document) -> core.Span | None:
    """The document's place in the text it was cut from, if it says so and the length agrees."""
    start, end = document.metadata.get(START), document.metadata.get(END)
    if isinstance(start, int) and isinstance(end, int) and end - start == len(document.page_content):
        return core.Span(start, end)
    return None


def facts_of(candidate: core.Candidate, reason: str = "") -> dict[str, Any]:
    """What the core knows of a candidate, as JSON values, for later stages to read back."""
    facts: dict[str, Any] = {"score": candidate.score, "score_scale": candidate.score_scale}
    if candidate.scores:
        facts["scores"] = {name: float(score) for name, score in candidate.scores.items()}
    if candidate.n_tokens is not None:
        facts["n_tokens"] = int(candidate.n_tokens)
    if candidate.passage is not None:
        facts["passage"] = [int(offset) for offset in candidate.passage]
    if reason:
        facts["reason"] = reason
    return facts


def _known_score(
    document: Document, score_scale: core.ScoreScale | None
) -> tuple[float, core.ScoreScale | None]:
    """The document's score and what it means; the scale is None where that is not known."""
    score = document.metadata.get(SCORE)
    if not isinstance(score, Real):
        return 0.0, None
    facts = _facts(document)
    return float(score), facts["score_scale"] if facts.get("score") == score else score_scale


def _facts(document: Document) -> Mapping[str, Any]:
    """What the core wrote about this very document; nothing if it has been cut since."""
    is_cut = START in document.metadata and piece_span(document) is None
    facts: Mapping[str, Any] = {} if is_cut else document.metadata.get(FACTS, {})
    return facts


def _place(document: Document) -> tuple[str, int, int]:
    """Where the text comes from: (source id, start, end), or itself if it is not known to be a piece."""
    span = piece_span(document)
    if span is not None and DOC_ID in document.metadata:
        return str(document.metadata[DOC_ID]), *span
    return document.id or _content_id(document), 0, len(document.page_content)


def _content_id(document: Document) -> str:
    text = document.page_content.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _numbered(name: str, key: object, seen: Counter[object]) -> str:
    """`name`, marked `#2`, `#3` … from the second time that `key` comes."""
    seen[key] += 1
    return name if seen[key] == 1 else f"{name}#{seen[key]}"
