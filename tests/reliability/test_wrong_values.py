"""Values of the wrong kind, wherever a user can pass one: each is taken, or one of our errors."""

import asyncio
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import TextNode

import langchain_precise
import llamaindex_precise
import precise_rag as pr
from precise_rag.documents import read_documents
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.rerank import CohereReranker, load_reranker, rerank
from precise_rag.testing import HashEncoder, ScriptedLLM

ODD = {
    "nothing": None,
    "bytes": b"ab",
    "a flag": True,
    "a number": 7,
    "a fraction": 1.5,
    "a negative number": -1,
    "not a number": float("nan"),
    "401 digits": 10**400,
    "an object": {"a": 1},
    "a set": {1},
    "a list of nothing": [None],
    "a list of texts": ["x"],
    "a text": "x",
    "a lone surrogate": "\ud800",
    "something": object(),
}
ENCODER, LLM = HashEncoder(8), ScriptedLLM(lambda messages: "yes")
DOCUMENTS = [pr.Document("a", "The lamp is lit. Ilse keeps it."), pr.Document("b", "Otters sleep here.")]
CANDIDATES = [pr.Candidate("a", 0, 5, "The l", 0.5, "probability")]
INDEX = pr.HybridIndex.build(DOCUMENTS, ENCODER)
KINDS = (pr.HybridIndex, pr.SentenceContextIndex, pr.WordSentenceIndex, pr.DenseIndex)
LLAMA, LANG = [TextNode(text="The lamp is lit.")], [LangChainDocument("The lamp is lit.")]


def rag() -> pr.PreciseRAG:
    return pr.PreciseRAG(INDEX, LLM)


def save_and_load(encoder: Any) -> object:
    INDEX.save("saved")
    return pr.load_index("saved", encoder)


def with_argument(make: Callable[..., Any], rest: dict[str, Any], name: str, value: Any) -> object:
    made = make(**{**rest, name: value})
    return made.search("lamp") if isinstance(made, KINDS) else made


CALLS: dict[str, Callable[[Any], object]] = {
    "split_sentences": pr.split_sentences,
    "read_documents": lambda value: list(read_documents(value)) if value != 7 else None,  # 7: a descriptor
    "load_index": pr.load_index,
    "load_index encoder": save_and_load,
    "load_reranker": load_reranker,
    "load_llm": pr.load_llm,
    "weighted_sentences": lambda value: list(pr.weighted_sentences(value, ENCODER)),
    "weighted_chunks": lambda value: list(pr.weighted_chunks(value, ENCODER)),
    "segment": lambda value: pr.Segmenter.from_pretrained("small").segment(value),
    "segment_many": lambda value: list(pr.Segmenter.from_pretrained("small").segment_many(value)),
    "greedy": lambda value: list(pr.GreedySegmenter(ENCODER).segment_many(value)),
    "select": lambda value: pr.GradientSelector().select(value),
    "filter": lambda value: pr.RedundancyFilter().filter(value),
    "relevance": lambda value: pr.RelevanceFilter(LLM).filter("Who?", value),
    "relevance question": lambda value: pr.RelevanceFilter(LLM).filter(value, CANDIDATES),
    "threshold of": lambda value: pr.DynamicThreshold().of(value),
    "queries": lambda value: pr.QueryRewriter(LLM).queries(value),
    "rerank": lambda value: rerank(value, CANDIDATES, load_reranker()),
    "rerank candidates": lambda value: rerank("Who?", value, load_reranker()),
    "retrieve": lambda value: rag().retrieve(value),
    "retrieve history": lambda value: rag().retrieve("Who?", history=value),
    "retrieve candidates": lambda value: rag().retrieve("Who?", candidates=value),
    "retrieve filter": lambda value: rag().retrieve("Who?", filter=value),
    "answer": lambda value: rag().answer(value),
    "aanswer": lambda value: asyncio.run(rag().aanswer(value)),
    "stream": lambda value: list(rag().stream(value)),
    "prune": lambda value: pr.prune(value, "Who?", 50),
    "delete": lambda value: pr.HybridIndex.build(DOCUMENTS, ENCODER).delete(value),
    "add": lambda value: pr.HybridIndex.build(DOCUMENTS, ENCODER).add(value),
    "lock": lambda value: pr.HybridIndex.lock("locked", value).__enter__(),
    "save": INDEX.save,
    **{f"search {kind.__name__}": kind.build(DOCUMENTS, ENCODER).search for kind in KINDS},
}
LLAMA_INDEX = llamaindex_precise.PreciseRetriever.from_documents
LANG_CHAIN = langchain_precise.PreciseRetriever.from_documents
ARGUMENTS: list[tuple[Callable[..., Any], str, dict[str, Any]]] = [
    *(
        (kind.build, "documents encoder alpha", {"documents": DOCUMENTS, "encoder": ENCODER})
        for kind in KINDS
    ),
    (
        pr.HybridIndex.build,
        "passages surroundings dense_weight",
        {"documents": DOCUMENTS, "encoder": ENCODER},
    ),
    (pr.DenseIndex.build, "chunks backend precision", {"documents": DOCUMENTS, "encoder": ENCODER}),
    (INDEX.search, "top_k filter vector returns", {"query": "lamp"}),
    (pr.PreciseRAG.from_documents, "documents encoder llm preset index_options", {"documents": DOCUMENTS}),
    (pr.PreciseRAG, "index llm judge rewriter reranker redundancy relevance evidence", {"index": INDEX}),
    (pr.PreciseRAG, "selector feedback n_candidates order", {"index": INDEX}),
    (pr.Document, "id text metadata", {"id": "a", "text": "b"}),
    (pr.GradientSelector, "min_k ratio max_k max_tokens min_score share_of_best min_keep min_gap", {}),
    (pr.RedundancyFilter, "similarity_threshold prefilter", {}),
    (pr.DynamicThreshold, "tight min_score ceiling cap min_keep", {}),
    (pr.Budget, "calls tokens seconds cost", {}),
    (pr.FeedbackController, "accept max_rounds reach", {}),
    (pr.GreedySegmenter, "encoder threshold max_chars", {"encoder": ENCODER}),
    (pr.Segmenter.from_pretrained, "name threshold max_tokens min_tokens paragraphs", {"name": "small"}),
    (pr.OpenAIChat, "base_url timeout max_retries", {"model": "m"}),
    (CohereReranker, "timeout batch_size", {}),
    (LLAMA_INDEX, "documents embed_model reranker evidence", {"documents": LLAMA, "embed_model": ENCODER}),
    (LANG_CHAIN, "documents embeddings reranker evidence", {"documents": LANG, "embeddings": ENCODER}),
    (llamaindex_precise.PreciseRetriever.from_store, "store", {}),
    (langchain_precise.PreciseRetriever.from_store, "store", {}),
    (llamaindex_precise.EvidencePostprocessor, "max_tokens", {}),
    (langchain_precise.EvidenceCompressor, "reranker max_tokens", {}),
    (llamaindex_precise.SemanticSegmentationNodeParser, "max_tokens model", {}),
    (langchain_precise.SemanticSegmentationTextSplitter, "embeddings max_tokens model", {}),
    (llamaindex_precise.SelfFeedbackQueryEngine, "retriever llm judge", {"llm": LLM}),
    (langchain_precise.SelfFeedbackChain, "retriever llm judge", {"llm": LLM}),
]
for _make, _names, _rest in ARGUMENTS:
    for _name in _names.split():
        CALLS[f"{_make.__qualname__} {_make.__module__} {_name}"] = partial(
            with_argument, _make, _rest, _name
        )


@pytest.mark.parametrize("call", CALLS)
def test_a_value_of_the_wrong_kind_is_one_error(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for what, value in ODD.items():
        try:
            with warnings.catch_warnings(), suppress(PreciseRagError):
                warnings.simplefilter("ignore", RuntimeWarning)
                CALLS[call](value)
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error


@pytest.mark.parametrize(
    "call", [call for call in CALLS if call.split()[-1] in {"calls", "timeout", "reach", "min_k"}]
)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, "3", True, 10**400])
def test_a_limit_that_is_no_positive_number_is_refused(call: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{call.split()[-1]} must be"):
        CALLS[call](value)
