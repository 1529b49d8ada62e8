"""Compressor that cuts the documents of any retriever down to the evidence in them."""

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from pydantic import PrivateAttr

from langchain_precise.compressors import SelectionCompressor
from langchain_precise.convert import from_excerpts
from precise_rag.evidence import EvidenceExtractor
from precise_rag.protocols import Reranker
from precise_rag.rerank import load_reranker
from precise_rag.selection import ProbabilitySelector
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Excerpt, Selection

_DEFAULT = ProbabilitySelector()


class EvidenceCompressor(SelectionCompressor):
    """Compressor that returns excerpts: the relevant sentences of the documents and what belongs to them.

    The sentences of all documents are reranked, grow to the neighbours that probably belong to the same
    evidence, and are kept while they are worth their tokens, see `EvidenceExtractor`. Each excerpt is a new
    document in the order of the text, with the metadata of the one it was cut from; a `start_index` there
    is that of the excerpt.

    reranker: "default" (the best that is installed), or anything that `load_reranker` accepts; of one that
        is not ours only the order counts, see `LevelledReranker`.
    The other fields are those of `ProbabilitySelector`; with min_keep=0 nothing is returned if nothing is
    relevant.
    """

    reranker: Any = "default"
    share_of_best: float = _DEFAULT.share_of_best
    min_score: float = _DEFAULT.min_score
    enough_tokens: int | None = _DEFAULT.enough_tokens
    max_tokens: int | None = _DEFAULT.max_tokens
    min_keep: int = _DEFAULT.min_keep

    _extractor: EvidenceExtractor = PrivateAttr()
    _reranker: Reranker = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and load the reranker now, not at the first query."""
        names = ("share_of_best", "min_score", "enough_tokens", "max_tokens", "min_keep")
        selector = ProbabilitySelector(**{name: getattr(self, name) for name in names})
        self._reranker = load_reranker(self.reranker)
        self._extractor = EvidenceExtractor(self._reranker, selector)

    def decide(self, candidates: Sequence[Candidate], query: str, trace: Trace) -> Selection:
        """Keep the evidence: the excerpts in their order, then the sentences that were dropped."""
        return self._extractor.extract(query, candidates).selection

    def documents(self, selection: Selection) -> list[Document]:
        """Return the excerpts as documents."""
        return from_excerpts(one for one in selection.kept if isinstance(one, Excerpt))
