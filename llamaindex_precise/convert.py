"""Conversion between LlamaIndex nodes and core values.

    to_core_documents   documents or nodes → core documents, for an index
    to_candidates       scored nodes → candidates, for a stage of the core
    from_candidate      a candidate → a copy of the node that it was, or a new node if an index found it
    from_selection      the kept candidates of a selection → such nodes

A result has the metadata of its source and, under the one key "precise", the facts of
`precise_rag.facts`: its document and place there, its score and its scale. Embedding models and LLMs
do not see that entry. The facts count only while the node has the score that they are about. Nodes
passed in are never changed.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)

from precise_rag.checks import items_of
from precise_rag.facts import (
    FACTS_KEY,
    LAYOUT_KEY,
    PAGES_KEY,
    SECTION_KEY,
    SOURCE_KEY,
    candidate_facts,
    copied,
    noted_fields,
    noted_place,
    piece_id,
    read_facts,
    scores_on_a_scale,
    without_own_keys,
    write_facts,
)
from precise_rag.titles import PATH_KEYS, TITLE_KEYS, joined_fields, joined_titles, sections, titles_of
from precise_rag.tokens import estimate_tokens
from precise_rag.types import FIELDS_KEY, Candidate, Excerpt, ScoreScale, Selection, Span, with_scores
from precise_rag.types import Document as CoreDocument

LAYOUT_FIELDS = (
    "excluded_embed_metadata_keys",
    "excluded_llm_metadata_keys",
    "metadata_template",
    "metadata_separator",
    "text_template",
)


class FoundNode(TextNode):
    """A piece of a document that an index found.

    Its hash leaves out what one search found out about it. Fusion retrievers take nodes with equal
    hashes for one node, and some versions keep only one of them.
    """

    @property
    def hash(self) -> str:
        """Hash of the id, the text and the document's metadata."""
        metadata = {key: value for key, value in self.metadata.items() if key != FACTS_KEY}
        content = f"{self.node_id}{self.text}{metadata}"
        return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def to_core_documents(nodes: Iterable[BaseNode]) -> list[CoreDocument]:
    """Return a core document for each node, with what `from_candidate` needs.

    The metadata that the node shows its embedding model and LLMs stand above its text, as titles do; what it
    hides from one of them is not read. Nodes without text, such as images, cannot be found.
    """
    documents = []
    for node in items_of("documents", nodes, BaseNode):
        metadata = without_own_keys(node.metadata)
        excluded = {*node.excluded_llm_metadata_keys, *node.excluded_embed_metadata_keys}
        layout = {
            "source": root_source(node).node_id,
            "offset": root_offset(node),
            "hidden": {key: metadata.pop(key) for key in TITLE_KEYS if key in excluded & metadata.keys()},
            "fields": {name: getattr(node, name) for name in LAYOUT_FIELDS if hasattr(node, name)},
        }
        further = {**_fields(node), LAYOUT_KEY: layout}
        documents.append(CoreDocument(node.node_id, own_text(node), {**metadata, **further}))
    return documents


def to_candidates(
    nodes: Sequence[NodeWithScore],
    score_scale: ScoreScale | None = None,
    *,
    mode: MetadataMode = MetadataMode.EMBED,
) -> list[Candidate]:
    """Return one candidate per scored node, in the order given. Each keeps its node for `from_candidate`.

    score_scale: the scale of scores that have no facts; `scores_on_a_scale` says when the order given
    replaces all scores. Otherwise nodes without a finite score rank last, see `with_scores`.
    mode: which metadata are read with the text; with NONE, offsets in it are exact. Default: those that the
    node's embedding model saw. Of a node that an index of ours found, the indexed text is read.
    """
    nodes = list(items_of("nodes", nodes, NodeWithScore))
    scored = [(item.score, _facts(item.node)) for item in nodes]
    scores, scale = scores_on_a_scale(scored, score_scale)
    candidates = []
    for item, (_, facts) in zip(nodes, scored, strict=True):
        doc_id, span = _place(item.node, facts)
        text = _read_text(item.node, mode)
        fields = _fields(item.node) if mode == MetadataMode.NONE else {}  # else they are in the text
        end = span.start + len(text) if mode == MetadataMode.NONE else span.end
        metadata = {**shown_metadata(item.node), **fields, SOURCE_KEY: item}
        place = doc_id, span.start, end
        candidates.append(Candidate(*place, text, 0.0, scale, metadata=metadata, **noted_fields(facts)))
    return with_scores(candidates, scores)


def from_candidate(candidate: Candidate, reason: str = "") -> NodeWithScore:
    """Return a scored node for a candidate, with the facts about it.

    reason: why a selection kept it, if one did.
    The node is a copy of the one that became the candidate; if the candidate is another part of its text,
    the copy has that text and place. Without such a node it is new, points to its document (SOURCE) and
    has that document's metadata and excluded keys. A score that only repeats the order is not written.
    """
    item: Any = candidate.metadata.get(SOURCE_KEY)
    was_node = isinstance(item, NodeWithScore)
    node = _part(item.node, candidate) if was_node else _found_node(candidate)
    is_order = was_node and candidate.score_scale == "rank" and "retrieval" not in candidate.scores
    score = item.score if is_order else candidate.score
    return NodeWithScore(node=_with_facts(node, candidate, reason), score=score)


def from_selection(selection: Selection) -> list[NodeWithScore]:
    """Return the nodes of the kept candidates, in their order, with their scores and reasons.

    The metadata "section" of an excerpt is what stands above it, such as "Pump > Oil", without titles that
    its metadata shows to LLMs anyway. LLMs do not see the headings that other entries repeat, such as
    "header_path". If the user has an entry "section", all stay as they are.
    """
    nodes = [from_candidate(d.candidate, d.reason) for d in selection.decisions if d.kept]
    for item, piece, titles in zip(nodes, selection.kept, sections(selection.kept), strict=True):
        if isinstance(piece, Excerpt):
            _without_path(item, piece)
            if section := _section(piece, titles):
                item.node.metadata.setdefault(SECTION_KEY, section)
    return nodes


def shown(pieces: Iterable[Candidate]) -> list[str]:
    """Return the nodes of pieces as an LLM reads them."""
    return [item.get_content(MetadataMode.LLM) for item in from_selection(Selection.keep_all(pieces))]


def piece_tokens(piece: Candidate) -> int:
    """Count the tokens that the node of a piece costs in a prompt, beside those of its text."""
    node = _without_path(from_candidate(piece), piece).node
    return estimate_tokens(node.get_content(MetadataMode.LLM)) - estimate_tokens(own_text(node))


def root_source(node: BaseNode) -> RelatedNodeInfo:
    """Return the document that `node` comes from: its source or, without one, the node itself."""
    if node.source_node is not None:
        return node.source_node
    try:
        return node.as_related_node_info()
    except ValueError:  # its hash reads the metadata, and Python does not write very long numbers
        return RelatedNodeInfo(node_id=node.node_id)


def root_offset(node: BaseNode) -> int | None:
    """Return where the text of `node` starts in its root document, or None if that is not known."""
    return 0 if node.source_node is None else _own_start(node)


def _own_start(node: BaseNode) -> int | None:
    """Where the text of a node starts by its own offsets; None if they are not those of its text."""
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    fits = start is not None and end is not None and end - start == len(own_text(node))
    return start if fits else None


def _found_node(candidate: Candidate) -> FoundNode:
    alone = {"source": candidate.doc_id, "offset": 0, "hidden": {}, "fields": {}}
    layout = candidate.metadata.get(LAYOUT_KEY, alone)
    metadata = without_own_keys({**candidate.metadata, **layout["hidden"]})
    metadata = {str(key): value for key, value in copied(metadata).items()}
    source = RelatedNodeInfo(node_id=layout["source"], node_type=ObjectType.DOCUMENT, metadata=dict(metadata))
    fields = {**layout["fields"], "metadata": metadata, "relationships": {NodeRelationship.SOURCE: source}}
    id_ = piece_id(candidate.doc_id, candidate.start, candidate.end)
    node = FoundNode(id_=id_, text=candidate.text, **fields)
    if layout["offset"] is not None:
        node.start_char_idx = layout["offset"] + candidate.start
        node.end_char_idx = layout["offset"] + candidate.end
    return node


def _part(node: BaseNode, candidate: Candidate) -> BaseNode:
    """Return the node or, for another part of its text, a text node of that, without links to neighbours."""
    if candidate.text in [_read_text(node, mode) for mode in MetadataMode]:
        return node
    whole = as_text_node(node)
    around = {kind: to for kind, to in whole.relationships.items() if kind.name not in ("PREVIOUS", "NEXT")}
    own = {"id_": piece_id(candidate.doc_id, candidate.start, candidate.end), "text": candidate.text}
    place = {"start_char_idx": candidate.start, "end_char_idx": candidate.end, "embedding": None}
    return whole.model_copy(update={**own, **place, "relationships": around})


def as_text_node(node: BaseNode) -> TextNode:
    """Return the text of any node as a node that LlamaIndex can cut."""
    if isinstance(node, TextNode):
        return node
    kept = {name: getattr(node, name) for name in ("metadata", *LAYOUT_FIELDS) if hasattr(node, name)}
    around = {NodeRelationship.SOURCE: root_source(node), **node.relationships}
    return TextNode(id_=node.node_id, text=own_text(node), relationships=around, **kept)


def _without_path(item: NodeWithScore, piece: Candidate) -> NodeWithScore:
    """Hide from LLMs the headings in the metadata of a new node, unless its "section" is the user's."""
    metadata, hidden = item.node.metadata, item.node.excluded_llm_metadata_keys
    if metadata.get(SECTION_KEY) == _section(piece, read_facts(piece).get("above", ())):
        metadata.pop(SECTION_KEY, None)  # of an earlier stage, which had other pieces around this one
    if SECTION_KEY not in metadata:
        hidden += [key for key in PATH_KEYS if key in metadata and key not in hidden]
    return item


def _section(piece: Candidate, titles: Iterable[str]) -> str:
    """The titles that other entries of its metadata do not show."""
    named = titles_of({key: value for key, value in piece.metadata.items() if key not in PATH_KEYS})
    return joined_titles(title for title in titles if title not in named)


def shown_metadata(node: BaseNode) -> dict[str, Any]:
    """Return the metadata without what LLMs may not see: a pipeline shows titles and headings."""
    return {k: value for k, value in node.metadata.items() if k not in node.excluded_llm_metadata_keys}


def _fields(node: BaseNode) -> dict[str, str]:
    """Return the metadata that a node shows its models, beside titles, as one entry."""
    hidden = {*node.excluded_llm_metadata_keys, *node.excluded_embed_metadata_keys, "page_label"}
    line = joined_fields(without_own_keys(node.metadata), hidden)
    return {FIELDS_KEY: line} if line else {}


def _read_text(node: BaseNode, mode: MetadataMode) -> str:
    """Return the text of a node, with the metadata of a mode if they can be written."""
    with suppress(ValueError):
        if not isinstance(node, FoundNode):
            return node.get_content(mode)
    return own_text(node)


def _facts(node: BaseNode) -> dict[str, Any]:
    """Return the facts about this very node; none if its text has changed since they were written."""
    facts = read_facts(node)
    return facts if noted_place(facts, len(own_text(node))) else {}


def own_text(node: BaseNode) -> str:
    """Return the text of a node without its metadata."""
    return node.get_content(MetadataMode.NONE)


def _place(node: BaseNode, facts: dict[str, Any]) -> tuple[str, Span]:
    """Return the node's document and its span there, or the node itself if that is not known."""
    if facts:
        return facts["doc_id"], Span(facts["start"], facts["end"])
    start, length = _own_start(node), len(own_text(node))
    if start is None:
        return node.node_id, Span(0, length)
    return node.ref_doc_id or node.node_id, Span(start, start + length)


def _with_facts(node: BaseNode, candidate: Candidate, reason: str = "") -> BaseNode:
    """Return a copy of `node` with the facts, hidden from embedding models and LLMs."""
    own: dict[str, Any] = {name: copied(getattr(node, name)) for name in ("metadata", "relationships")}
    own["metadata"][FACTS_KEY] = write_facts(candidate_facts(candidate, reason))
    copy = node.model_copy(update=own)
    hide(copy, FACTS_KEY)
    return copy


def hide(node: BaseNode, *keys: str) -> None:
    """Hide entries of the metadata from embedding models and LLMs, and where pages of a document begin."""
    pages = [PAGES_KEY] if isinstance(node.metadata.get(PAGES_KEY), list) else []
    for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        setattr(node, name, list(dict.fromkeys((*getattr(node, name), *keys, *pages))))
