"""Conversion between LangChain documents and core values.

    to_core_documents   documents → core documents, for an index
    to_candidates       documents → candidates, for a stage of the core
    from_candidate      a candidate → a copy of the document that it was, or a new one if an index found it
    from_selection      the kept candidates of a selection → such documents, with what stands above them

A result has the metadata of its source and, under the one key "precise", the facts of
`precise_rag.facts`: its document and place there, its score and its scale. The facts count only while
the document has the text that they are about, and no other component has scored it anew in
`metadata["relevance_score"]`. Documents passed in are never changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate, format_document

from precise_rag.checks import items_of
from precise_rag.facts import (
    FACTS_KEY,
    SECTION_KEY,
    SOURCE_KEY,
    candidate_facts,
    copied,
    distinct_names,
    is_same,
    noted_fields,
    noted_place,
    piece_id,
    place_facts,
    read_facts,
    scores_on_a_scale,
    without_own_keys,
    write_facts,
)
from precise_rag.titles import joined_titles, sections, titles_of
from precise_rag.types import Candidate, ScoreScale, Selection, Span, finite_score, with_scores
from precise_rag.types import Document as CoreDocument

DOCUMENT_PROMPT = PromptTemplate.from_template(
    "{{#section}}{{{section}}}\n{{/section}}{{{page_content}}}", template_format="mustache"
)
"""Document prompt for chains that take one: the text of an excerpt below the titles and headings above it.

It is for what our retriever, compressors and chain return: the first document of each section has what stands
above it in its metadata "section", the others an empty text. Our splitters write it, too; others' need it.
"""
_START_INDEX = "start_index"
"""Metadata key under which text splitters of LangChain keep the place of a piece."""
_HEAD = 200  # characters that tell documents of one source apart
_FOREIGN_SCORE = "relevance_score"
"""Metadata key under which the compressors of LangChain's partners write their scores."""


class FoundDocument(Document):
    """A document that we found: it equals one of its id, text, place and metadata, found by any question.

    It is shown, saved and pickled as LangChain's own class: checkpoints of LangGraph take no class of others.
    """

    def __eq__(self, other: object) -> bool:
        places = {piece_place(one) for one in (self, other) if isinstance(one, Document)} - {None}
        if not isinstance(other, Document) or len(places) > 1 or self.id != other.id:
            return False
        same_text = self.page_content == other.page_content
        return same_text and is_same(lasting(self.metadata), lasting(other.metadata))

    def __reduce__(self) -> Any:
        return Document.model_validate, (dict(self),)


FoundDocument.__name__, FoundDocument.__module__ = Document.__name__, Document.__module__


def to_core_documents(documents: Iterable[Document]) -> list[CoreDocument]:
    """Return a core document for each document, with its id or a hash of all it holds; repeats get `#2` …"""
    documents = list(items_of("documents", documents, Document))
    names = distinct_names((_own_name(document), None) for document in documents)
    return [
        CoreDocument(name, document.page_content, without_own_keys(lasting(document.metadata)))
        for name, document in zip(names, documents, strict=True)
    ]


def split_names(documents: Iterable[Document]) -> list[str]:
    """Return an id for each document to cut, which stays while its metadata and the start of its text do."""
    names = [one.id or source_name(one, one.page_content[:_HEAD]) or _own_name(one) for one in documents]
    return distinct_names((name, None) for name in names)


def to_candidates(documents: Iterable[Document], score_scale: ScoreScale | None = None) -> list[Candidate]:
    """Return one candidate per document, in the order given, each with an id of its own.

    score_scale: the scale of a `relevance_score` that has no facts; `scores_on_a_scale` says when the order
    given replaces all scores. Otherwise documents without a finite score rank last, see `with_scores`.
    """
    documents = list(items_of("documents", documents, Document))
    scored = [_scored(document) for document in documents]
    scores, scale = scores_on_a_scale(scored, score_scale)
    candidates = [
        Candidate(name, *span, one.page_content, 0.0, scale, metadata=metadata, **noted_fields(facts))
        for one, (_, facts), (name, span) in zip(documents, scored, _places(documents), strict=True)
        for metadata in ({**one.metadata, SOURCE_KEY: one},)
    ]
    return with_scores(candidates, scores)


def from_candidate(candidate: Candidate, reason: str = "") -> Document:
    """Return a document for a candidate, with the facts about it.

    reason: why a selection kept it, if one did.
    The document is a copy of the one that became the candidate. If the candidate is another part of its
    text, the copy has that text, its place as `start_index` if there was one, and an id of its own. Without
    such a document it is new, with the metadata of the indexed one.
    """
    metadata = lasting(candidate.metadata)
    given = metadata.pop(SOURCE_KEY, None)
    if isinstance(given, Document) and (first := finite_score(metadata.get(_START_INDEX))) is not None:
        metadata[_START_INDEX] = int(first) + candidate.start - _place(given)[1].start
    facts = candidate_facts(candidate, reason)
    if (foreign := finite_score(metadata.get(_FOREIGN_SCORE))) is not None:
        facts["foreign_score"] = foreign
    is_whole = isinstance(given, Document) and given.page_content == candidate.text
    return FoundDocument(
        id=given.id if is_whole else piece_id(candidate.doc_id, candidate.start, candidate.end),
        page_content=candidate.text,
        metadata={**copied(metadata), FACTS_KEY: write_facts(facts)},
    )


def from_selection(selection: Selection) -> list[Document]:
    """Return the documents of what is kept, in its order, with the facts about them.

    The metadata "section" is what stands above it, such as "Pump > Oil", for `DOCUMENT_PROMPT`. An entry of
    this name that is the user's stays.
    """
    documents = [from_candidate(d.candidate, d.reason) for d in selection.decisions if d.kept]
    for document, titles in zip(documents, sections(selection.kept), strict=True):
        document.metadata.setdefault(SECTION_KEY, joined_titles(titles))
    return documents


def shown(pieces: Iterable[Candidate]) -> list[str]:
    """Return the documents of pieces as `DOCUMENT_PROMPT` shows them to a model."""
    return [format_document(one, DOCUMENT_PROMPT) for one in from_selection(Selection.keep_all(pieces))]


def piece_place(document: Document) -> tuple[str, Span] | None:
    """Return the document's place in its source, or None if it names none or one of another length.

    Without facts it is the `start_index` by LangChain's splitters, in the document of `source_name`.
    """
    facts, length = read_facts(document), len(document.page_content)
    start, name = finite_score(document.metadata.get(_START_INDEX)), source_name(document)
    if FACTS_KEY not in document.metadata and start is not None and name:
        facts = place_facts(name, Span(int(start), int(start) + length))
    return noted_place(facts, length)


def source_name(document: Document, head: str = "") -> str | None:
    """Return a name that all pieces of a document share: its `source`, and a hash of its other metadata."""
    metadata, own = lasting(document.metadata), ("source", _START_INDEX, _FOREIGN_SCORE)
    rest = {key: value for key, value in metadata.items() if key not in own and not str(key).startswith("_")}
    return f"{metadata['source']}:{_hashed(head, rest)}" if isinstance(metadata.get("source"), str) else None


def lasting(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata without what one question found out: our facts, and the section that we wrote."""
    source, above = str(metadata.get("source")), noted_fields(read_facts(metadata))["above"]
    above = above or titles_of(metadata)  # to which a splitter behind ours may have added some
    ours = {joined_titles((*own, *above[:n])) for own in ((), (source,)) for n in range(len(above) + 1)}
    is_ours = FACTS_KEY in metadata and metadata.get(SECTION_KEY) in ours
    return {k: v for k, v in metadata.items() if k != FACTS_KEY and not (is_ours and k == SECTION_KEY)}


def _scored(document: Document) -> tuple[object, dict[str, Any]]:
    """Return the document's score, and the facts about it: none if it has been cut since."""
    foreign = document.metadata.get(_FOREIGN_SCORE)
    facts = read_facts(document)
    if noted_place(facts, len(document.page_content)) is None:
        return foreign, {}
    is_ours = "score" in facts and finite_score(foreign) == facts.get("foreign_score")
    return facts["score"] if is_ours else foreign, facts


def _places(documents: Sequence[Document]) -> list[tuple[str, Span]]:
    """Return the place of each document; `#2`, `#3` … is added to the id if a place comes again.

    If chunks of one source say different things at one place, it has several documents: each is its own.
    """
    places, shared = [_place(one) for one in documents], set()
    furthest: dict[str, tuple[int, str]] = {}
    for (name, span), text in sorted((p, d.page_content) for p, d in zip(places, documents, strict=True)):
        start, before = furthest.get(name, (0, ""))
        both = min(start + len(before), span.end) - span.start
        if both > 0 and before[span.start - start :][:both] != text[:both]:
            shared.add(name)
        if span.end >= start + len(before):
            furthest[name] = span.start, text
    own = [
        (_own_name(one) if name in shared and FACTS_KEY not in one.metadata else name, span)
        for one, (name, span) in zip(documents, places, strict=True)
    ]
    return [(name, span) for name, (_, span) in zip(distinct_names(own), own, strict=True)]


def _place(document: Document) -> tuple[str, Span]:
    """Return the document's source and its span there, or the document itself if that is not known."""
    return piece_place(document) or (_own_name(document), Span(0, len(document.page_content)))


def _own_name(document: Document) -> str:
    return document.id or _hashed(document.page_content, without_own_keys(lasting(document.metadata)))


def _hashed(text: str, metadata: Mapping[str, Any]) -> str:
    content = "\n".join([text, *sorted(map(repr, metadata.items()))]).encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=8).hexdigest()
