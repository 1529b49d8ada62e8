"""Postprocessor that cuts the nodes of any retriever down to the evidence in them."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.schema import NodeWithScore

from llamaindex_precise.convert import from_excerpts, own_texts, piece_tokens
from llamaindex_precise.postprocessors import RerankerComponent, SelectionPostprocessor, require_query
from precise_rag.evidence import EvidenceExtractor
from precise_rag.protocols import Reranker
from precise_rag.selection import ProbabilitySelector
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Excerpt, Selection

_DEFAULT = ProbabilitySelector()


class EvidencePostprocessor(RerankerComponent, SelectionPostprocessor):
    """Postprocessor that returns excerpts: the relevant sentences of the nodes and what belongs to them.

    The sentences of all nodes are reranked, grow to the neighbours that probably belong to the same
    evidence, and are kept while they are worth their tokens, see `EvidenceExtractor`. Each excerpt is a new
    node in the order of the text, with the metadata and the relationship to the document of the node it
    was cut from. Its `start_char_idx` and `end_char_idx` are exact if those of the node are. A node
    without text is left out.

    reranker: scores the sentences; of one that is not ours only the order counts, see `LevelledReranker`.
    The other fields are those of `ProbabilitySelector`; with min_keep=0 nothing is returned if nothing is
    relevant.
    """

    share_of_best: float = Field(
        default=_DEFAULT.share_of_best,
        description="Lowest share of the best sentence's probability to be kept.",
    )
    min_score: float = Field(
        default=_DEFAULT.min_score, description="Lowest probability of a sentence to be kept."
    )
    enough_tokens: int | None = Field(
        default=_DEFAULT.enough_tokens, description="Tokens after which no further sentence is kept."
    )
    max_tokens: int | None = Field(
        default=_DEFAULT.max_tokens, description="Most tokens of all nodes as they are written, estimated."
    )
    min_keep: int = Field(
        default=_DEFAULT.min_keep,
        description="How many of the best to keep even under the threshold.",
    )

    _extractor: EvidenceExtractor = PrivateAttr()
    _reranker: Reranker = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and load the reranker now, not at the first query."""
        super().model_post_init(context)
        names = ("share_of_best", "min_score", "enough_tokens", "max_tokens", "min_keep")
        selector = ProbabilitySelector(**{name: getattr(self, name) for name in names})
        self._reranker = self._load_reranker()
        self._extractor = EvidenceExtractor(self._reranker, selector)

    def candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        """Return the nodes as core candidates, with their text alone."""
        return own_texts(nodes)

    def reranker_for(self, candidates: Sequence[Candidate]) -> Reranker | None:
        """Return the reranker."""
        return self._reranker

    def decide(self, candidates: Sequence[Candidate], query: str | None, trace: Trace) -> Selection:
        """Keep the evidence: the excerpts in their order, then the sentences that were dropped."""
        return self._extractor.extract(require_query(query), candidates, piece_tokens).selection

    def nodes(self, selection: Selection) -> list[NodeWithScore]:
        """Return the excerpts as nodes."""
        return from_excerpts(one for one in selection.kept if isinstance(one, Excerpt))
