"""LlamaIndex postprocessors and LangChain compressors as rerankers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.types import Candidate, FloatArray, ScoreScale

_PLACE = "precise_rag_place"
"""Metadata key for a document's place in the list, by which its score is assigned."""
_MODEL = ("model", "model_name", "model_id", "llm")
"""Attributes that name the model of a reranker, or hold an object that names it."""


class FrameworkReranker:
    """A LlamaIndex postprocessor or LangChain compressor as a reranker.

    reranker: the object. What it does not return, as of its `top_n`, ranks behind what it returns. Its class
        and the name of its model, where it has one, are the name of this one.
    score_scale: what its scores mean; with "rank" (default) only its order is used. The score is then
        1 / rank, and 0 for what it does not return. On other scales that has no score.
    """

    def __init__(self, reranker: Any, *, score_scale: ScoreScale = "rank") -> None:
        self._reranker = reranker
        model = _model_of(reranker)
        self.name = f"{type(reranker).__name__}({model})" if model else type(reranker).__name__
        self.score_scale = score_scale

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) scores, one per candidate, in their order."""
        run = self._postprocess if hasattr(self._reranker, "postprocess_nodes") else self._compress
        missing = 0.0 if self.score_scale == "rank" else math.nan
        scores = np.full(len(candidates), missing, dtype=np.float32)
        places = {str(place): place for place in range(len(candidates))}
        for rank, (id_, score) in enumerate(run(query, candidates), start=1):
            if (place := places.get(id_)) is None:
                raise InputError(f"{self.name} must keep the ids of what it scores, got a new one, {id_!r}")
            if self.score_scale == "rank":
                scores[place] = 1.0 / rank
            elif score is not None:
                scores[place] = score
        return scores

    def _postprocess(self, query: str, candidates: Sequence[Candidate]) -> list[tuple[str, float | None]]:
        schema = require("llama_index.core.schema", extra="llamaindex")
        nodes = [
            schema.NodeWithScore(node=schema.TextNode(id_=str(place), text=c.text), score=c.score)
            for place, c in enumerate(candidates)
        ]
        ranked = self._reranker.postprocess_nodes(nodes, query_str=query)
        return [(node.node.node_id, node.score) for node in ranked]

    def _compress(self, query: str, candidates: Sequence[Candidate]) -> list[tuple[str, float | None]]:
        documents = require("langchain_core.documents", extra="langchain")
        given = [
            documents.Document(page_content=c.text, id=str(place), metadata={_PLACE: place})
            for place, c in enumerate(candidates)
        ]
        ranked = self._reranker.compress_documents(given, query)
        return [(str(d.metadata.get(_PLACE, d.id)), d.metadata.get("relevance_score")) for d in ranked]


def _model_of(source: Any, depth: int = 2) -> str:
    """Return the name of the model that an object uses; empty if it tells none."""
    for attribute in _MODEL:
        value = getattr(source, attribute, None)
        if isinstance(value, str) and value:
            return value
        if depth and value is not None and (found := _model_of(value, depth - 1)):
            return found
    return ""
