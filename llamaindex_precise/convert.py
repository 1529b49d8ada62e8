"""LlamaIndex nodes to core values and back.

What the core knew of a candidate (place, scale, earlier scores, tokens, passage, the last reason)
travels in one metadata entry, `FACTS`, which neither embedding models nor LLMs get to see. It is
read back by the next stage; what it says about the score counts only while the node still has that
score, since components of others, such as fusion retrievers, rewrite scores. Nodes given by callers
are never changed; copies are returned.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
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

from precise_rag.types import Candidate, Document, ScoreScale, Selection, Span

FACTS = "precise_rag"
"""Metadata key of what the core knew of a candidate."""

_LAYOUT = "llama_index"
"""Metadata key under which an index keeps what its nodes looked like."""

_POSITION = "position"
"""Candidate metadata key: the place of its node in the list given."""

_LAYOUT_FIELDS = (
    "excluded_embed_metadata_keys",
    "excluded_llm_metadata_keys",
    "metadata_template",
    "metadata_separator",
    "text_template",
)


class FoundNode(TextNode):
    """A piece of a document that an index found.

    Its hash is that of the piece, not of what one search found out about it: fusion retrievers take
    nodes with equal hashes for one node, and some versions drop all but one of them.
    """

    @property
    def hash(self) -> str:
        """Hash of the id, the text and the document's own metadata."""
        metadata = {key: value for key, value in self.metadata.items() if key != FACTS}
        content = f"{self.node_id}{self.text}{metadata}"
        return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def root_source(node: BaseNode) -> RelatedNodeInfo:
    """The document that `node` comes from: its own source, or else the node itself."""
    return node.source_node or node.as_related_node_info()


def root_offset(node: BaseNode) -> int | None:
    """Where the text of `node` starts in its root document; None where nobody knows."""
    if node.source_node is None:
        return 0
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if start is None or end is None or end - start != len(node.get_content(MetadataMode.NONE)):
        return None
    return int(start)


def to_document(node: BaseNode) -> Document:
    """A core document for a Document or TextNode, from which `from_candidate` can make nodes again."""
    layout = {name: getattr(node, name) for name in _LAYOUT_FIELDS if hasattr(node, name)}
    layout["source"] = root_source(node).node_id
    layout["offset"] = root_offset(node)
    return Document(node.node_id, node.get_content(MetadataMode.NONE), {**node.metadata, _LAYOUT: layout})


def from_candidate(candidate: Candidate) -> NodeWithScore:
    """A new scored node for a candidate of an index, pointing to the document it was cut from."""
    fields: dict[str, Any] = dict(candidate.metadata.get(_LAYOUT, {}))
    source, offset = fields.pop("source", candidate.doc_id), fields.pop("offset", 0)
    if offset is not None:
        fields |= {"start_char_idx": offset + candidate.start, "end_char_idx": offset + candidate.end}
    metadata = deepcopy({key: value for key, value in candidate.metadata.items() if key != _LAYOUT})
    info = RelatedNodeInfo(node_id=source, node_type=ObjectType.DOCUMENT, metadata=dict(metadata))
    fields |= {"metadata": metadata, "relationships": {NodeRelationship.SOURCE: info}}
    node = FoundNode(id_=candidate.id, text=candidate.text, **fields)
    return NodeWithScore(node=_with_facts(node, candidate), score=float(candidate.score))


def to_candidates(nodes: Sequence[NodeWithScore], score_scale: ScoreScale | None = None) -> list[Candidate]:
    """Core candidates for scored nodes, in the order given.

    A piece that an index of ours found is read by the text that was indexed; any other node as its
    embedding model saw it (`MetadataMode.EMBED`). `score_scale` says what scores of unknown origin
    mean; unsaid, only their order counts. If any score is missing, the order given stands for all.
    """
    unscored = any(item.score is None for item in nodes)
    candidates = []
    for position, item in enumerate(nodes):
        node = item.node
        facts = _facts(node)
        if unscored or facts.get("score") != item.score:
            facts = {}
        text = node.get_content(MetadataMode.NONE if isinstance(node, FoundNode) else MetadataMode.EMBED)
        doc_id, span = _place(node, len(text))
        passage = facts.get("passage")
        candidates.append(
            Candidate(
                doc_id=doc_id,
                start=span.start,
                end=span.end,
                text=text,
                score=-float(position) if item.score is None or unscored else item.score,
                score_scale=facts.get("score_scale") or (score_scale if not unscored else None) or "rank",
                n_tokens=facts.get("n_tokens"),
                passage=None if passage is None else Span(*passage),
                scores=facts.get("scores", {}),
                metadata={**node.metadata, _POSITION: position},
            )
        )
    return candidates


def from_candidates(
    candidates: Iterable[Candidate],
    nodes: Sequence[NodeWithScore],
    reasons: Iterable[str] | None = None,
) -> list[NodeWithScore]:
    """Copies of the nodes that `to_candidates` was given, scored and explained by `candidates`."""
    candidates = list(candidates)
    scored = []
    for candidate, reason in zip(candidates, reasons or [""] * len(candidates), strict=True):
        item = nodes[candidate.metadata[_POSITION]]
        invented = candidate.score_scale == "rank" and item.score is None
        scored.append(
            NodeWithScore(
                node=_with_facts(item.node, candidate, reason),
                score=None if invented else float(candidate.score),
            )
        )
    return scored


def from_selection(selection: Selection, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Copies of the kept nodes, in the order of the selection, each with the reason it was kept."""
    kept = [decision for decision in selection.decisions if decision.kept]
    return from_candidates((d.candidate for d in kept), nodes, [d.reason for d in kept])


def _place(node: BaseNode, length: int) -> tuple[str, Span]:
    """The document that a node comes from and its place there, or itself where that is not known."""
    if known := _facts(node).get("place"):
        doc_id, start, end = known
        return doc_id, Span(start, end)
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if start is None or end is None:
        return node.node_id, Span(0, length)
    return node.ref_doc_id or node.node_id, Span(start, end)


def _facts(node: BaseNode) -> Mapping[str, Any]:
    """What precise-rag wrote about this node."""
    facts = node.metadata.get(FACTS)
    return facts if isinstance(facts, Mapping) else {}


def _with_facts(node: BaseNode, candidate: Candidate, reason: str = "") -> BaseNode:
    """A copy of `node` that carries the facts, hidden from embedding models and LLMs."""
    facts: dict[str, Any] = {
        "place": [candidate.doc_id, candidate.start, candidate.end],
        "score": float(candidate.score),
        "score_scale": candidate.score_scale,
        "scores": {name: float(score) for name, score in candidate.scores.items()},
        "n_tokens": candidate.n_tokens,
        "passage": None if candidate.passage is None else list(candidate.passage),
    }
    if reason:
        facts["reason"] = reason
    return node.model_copy(
        update={
            "metadata": {**deepcopy(node.metadata), FACTS: facts},
            "excluded_embed_metadata_keys": _including(node.excluded_embed_metadata_keys, FACTS),
            "excluded_llm_metadata_keys": _including(node.excluded_llm_metadata_keys, FACTS),
        }
    )


def _including(keys: Sequence[str], key: str) -> list[str]:
    return [*keys] if key in keys else [*keys, key]
