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

from collections.abc import Iterable, Mapping
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
    noted_fields,
    noted_place,
    piece_id,
    read_facts,
    scores_on_a_scale,
    without_own_keys,
    write_facts,
)
from precise_rag.titles import joined_titles, new_sections, titles_of
from precise_rag.types import Candidate, ScoreScale, Selection, Span, finite_score, with_scores
from precise_rag.types import Document as CoreDocument

DOCUMENT_PROMPT = PromptTemplate.from_template(
    "{{#section}}{{{section}}}\n{{/section}}{{{page_content}}}", template_format="mustache"
)
"""Document prompt for chains that take one: the text of an excerpt below the titles and headings above it.

It is for what our retriever, compressors and chain return: the first document of each section has what stands
above it in its metadata "section", the others an empty text. Others' documents need the entry, too.
"""

_START_INDEX = "start_index"
"""Metadata key under which text splitters of LangChain keep the place of a piece."""

_FOREIGN_SCORE = "relevance_score"
"""Metadata key under which the compressors of LangChain's partners write their scores."""


class FoundDocument(Document):
    """A document that we found: it equals one of its id, text, place and metadata, found by any question.

    It is shown, written and pickled as LangChain's own class, so readers need nothing of ours.
    """

    def __eq__(self, other: object) -> bool:
        both = [one for one in (self, other) if isinstance(one, Document)]
        same, *others = [(one.id, one.page_content, _lasting(one.metadata)) for one in both]
        return others == [same] and len({*map(piece_place, both)} - {None}) < 2

    def __reduce__(self) -> Any:
        return Document.model_validate, (dict(self),)


FoundDocument.__name__, FoundDocument.__module__ = Document.__name__, Document.__module__


def to_core_documents(documents: Iterable[Document]) -> list[CoreDocument]:
    """Return a core document for each document, with the names of `document_names`."""
    documents = list(items_of("documents", documents, Document))
    return [
        CoreDocument(name, document.page_content, without_own_keys(document.metadata))
        for name, document in zip(document_names(documents), documents, strict=True)
    ]


def document_names(documents: Iterable[Document]) -> list[str]:
    """Return an id for each document: its own, or a hash of its text and metadata.

    If an id comes again, `#2`, `#3` … is added.
    """
    return distinct_names((document.id or _content_id(document), None) for document in documents)


def to_candidates(documents: Iterable[Document], score_scale: ScoreScale | None = None) -> list[Candidate]:
    """Return one candidate per document, in the order given, each with an id of its own.

    score_scale: the scale of a `relevance_score` that has no facts. The order given replaces all scores, on
    the "rank" scale, if the scales differ or one is unknown, or if a score is missing and no scale is given.
    Other documents whose score is missing or not finite rank last, see `with_scores`.
    """
    documents = list(items_of("documents", documents, Document))
    scored = [_scored(document) for document in documents]
    scores, scale = scores_on_a_scale(scored, score_scale)
    candidates = [
        Candidate(
            doc_id=doc_id,
            start=span.start,
            end=span.end,
            text=document.page_content,
            score=0.0,
            score_scale=scale,
            metadata={**document.metadata, SOURCE_KEY: document},
            **noted_fields(facts),
        )
        for document, (_, facts), (doc_id, span) in zip(documents, scored, _places(documents), strict=True)
    ]
    return with_scores(candidates, scores)


def from_candidate(candidate: Candidate, reason: str = "") -> Document:
    """Return a document for a candidate, with the facts about it.

    reason: why a selection kept it, if one did.
    The document is a copy of the one that became the candidate. If the candidate is another part of its
    text, the copy has that text, its place as `start_index` if there was one, and an id of its own. Without
    such a document it is new, with the metadata of the indexed one.
    """
    metadata = _lasting(candidate.metadata)
    given = metadata.pop(SOURCE_KEY, None)
    if isinstance(given, Document) and isinstance(first := metadata.get(_START_INDEX), int):
        metadata[_START_INDEX] = first + candidate.start - _place(given)[1].start
    facts = candidate_facts(candidate, reason)
    foreign = finite_score(metadata.get(_FOREIGN_SCORE))
    if foreign is not None:
        facts["foreign_score"] = foreign
    is_whole = isinstance(given, Document) and given.page_content == candidate.text
    return FoundDocument(
        id=given.id if is_whole else piece_id(candidate.doc_id, candidate.start, candidate.end),
        page_content=candidate.text,
        metadata={**copied(metadata), FACTS_KEY: write_facts(facts)},
    )


def from_selection(selection: Selection) -> list[Document]:
    """Return the documents of what is kept, in its order, with the facts about them.

    The metadata "section" of the first one of each section is what stands above it, such as "Pump > Oil",
    for `DOCUMENT_PROMPT`; that of the others is empty. An entry of this name that is the user's stays.
    """
    kept = [(d.candidate, d.reason) for d in selection.decisions if d.kept]
    documents = [from_candidate(candidate, reason) for candidate, reason in kept]
    for document, titles in zip(documents, new_sections([piece for piece, _ in kept]), strict=True):
        document.metadata.setdefault(SECTION_KEY, joined_titles(titles))
    return documents


def shown(pieces: Iterable[Candidate]) -> list[str]:
    """Return the documents of pieces as `DOCUMENT_PROMPT` shows them to a model."""
    return [format_document(one, DOCUMENT_PROMPT) for one in from_selection(Selection.keep_all(pieces))]


def piece_place(document: Document) -> tuple[str, Span] | None:
    """Return the document's place in its source, or None if it names none or one of another length."""
    return noted_place(read_facts(document), len(document.page_content))


def _lasting(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata without what one question found out: our facts, and the section that we wrote."""
    above = noted_fields(read_facts(metadata))["above"] or titles_of(metadata)
    ours = ("", joined_titles(above), joined_titles((str(metadata.get("source")), *above)))
    is_ours = FACTS_KEY in metadata and metadata.get(SECTION_KEY) in ours
    return {k: v for k, v in metadata.items() if k != FACTS_KEY and not (is_ours and k == SECTION_KEY)}


def _scored(document: Document) -> tuple[object, dict[str, Any]]:
    """Return the document's score, and the facts about it: none if it has been cut since."""
    foreign = document.metadata.get(_FOREIGN_SCORE)
    facts = read_facts(document)
    if noted_place(facts, len(document.page_content)) is None:
        return foreign, {}
    if "score" in facts and finite_score(foreign) == facts.get("foreign_score"):
        return facts["score"], facts
    return foreign, facts


def _places(documents: Iterable[Document]) -> list[tuple[str, Span]]:
    """Return the place of each document; `#2`, `#3` … is added to the id if a place comes again."""
    places = [_place(document) for document in documents]
    return [(name, span) for name, (_, span) in zip(distinct_names(places), places, strict=True)]


def _place(document: Document) -> tuple[str, Span]:
    """Return the document's source and its span there, or the document itself if that is not known."""
    whole = Span(0, len(document.page_content))
    return piece_place(document) or (document.id or _content_id(document), whole)


def _content_id(document: Document) -> str:
    metadata = sorted(map(repr, without_own_keys(document.metadata).items()))
    content = "\n".join([document.page_content, *metadata]).encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=8).hexdigest()
