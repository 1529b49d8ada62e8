"""Values of the wrong kind, wherever a user can pass one: each is taken, or one of our errors."""

import asyncio
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
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
from support.documents import read_cases

ODD: dict[str, Any] = read_cases("commands.json", "odd values")
ODD |= {"bytes": b"ab", "not a number": float("nan"), "401 digits": 10**400, "a set": {1}}
ODD |= {"something": object(), "one number of an array": np.array(3)}
ENCODER, LLM = HashEncoder(8), ScriptedLLM(lambda messages: "yes")
DOCUMENTS = [pr.Document("a", "The lamp is lit. Ilse keeps it."), pr.Document("b", "Otters sleep here.")]
CANDIDATES = [pr.Candidate("a", 0, 5, "The l", 0.5, "probability")]
INDEX, CHANGED = (pr.HybridIndex.build(DOCUMENTS, ENCODER) for _ in range(2))
KINDS = (pr.HybridIndex, pr.SentenceContextIndex, pr.WordSentenceIndex, pr.DenseIndex)
RAG = pr.PreciseRAG(INDEX, LLM)
SEGMENTER = pr.Segmenter.from_pretrained("small")
COMPRESS = langchain_precise.RedundancyCompressor().compress_documents
PUBLIC = [getattr(one, name) for one in (pr, langchain_precise, llamaindex_precise) for name in one.__all__]
REMOTE = pr.OpenAIChat | pr.DatabaseIndex
CLASSES = [one for one in PUBLIC if inspect.isclass(one) and not issubclass(one, dict | REMOTE)]


def read(paths: Any) -> list[pr.Document]:
    return list(read_documents(paths)) if paths != 7 else []  # 7: the number of an open file


def lock(timeout: Any) -> None:
    with pr.HybridIndex.lock("locked", timeout):
        pass


BUILDING = {"documents": DOCUMENTS, "encoder": ENCODER}
NODES = {"documents": [TextNode(text="The lamp is lit.")], "embed_model": ENCODER}
PAGES = {"documents": [LangChainDocument("The lamp is lit.")], "embeddings": ENCODER}
ARGUMENTS: list[tuple[Callable[..., Any], str, dict[str, Any]]] = [
    (pr.split_sentences, "text", {}),
    (read, "paths", {}),
    (pr.load_index, "path encoder", {"path": "saved"}),
    (load_reranker, "reranker", {}),
    (pr.load_llm, "source", {}),
    (pr.weighted_sentences, "documents", {"encoder": ENCODER}),
    (pr.weighted_chunks, "documents", {"encoder": ENCODER}),
    (SEGMENTER.segment, "text", {}),
    (SEGMENTER.segment_many, "texts", {}),
    (pr.GreedySegmenter(ENCODER).segment_many, "texts", {}),
    (pr.GradientSelector().select, "candidates", {}),
    (pr.RedundancyFilter().filter, "candidates", {}),
    (pr.RelevanceFilter(LLM).filter, "query candidates", {"query": "Who?", "candidates": CANDIDATES}),
    (pr.DynamicThreshold().of, "scores", {}),
    (pr.QueryRewriter(LLM).queries, "question", {}),
    (rerank, "query candidates", {"query": "?", "candidates": CANDIDATES, "reranker": load_reranker()}),
    (RAG.retrieve, "query history filter candidates trace", {"query": "Who?"}),
    *((ask, "query", {}) for ask in (RAG.answer, RAG.aanswer, RAG.stream)),
    (RAG.answer, "options", {"query": "Who?"}),
    (RAG.abatch, "queries", {}),
    (pr.prune, "text", {"question": "Who?", "max_tokens": 50}),
    *((CHANGED.add, "documents", {}), (CHANGED.delete, "ids", {})),
    *((lock, "timeout", {}), (INDEX.save, "path", {})),
    *((kind.build(DOCUMENTS, ENCODER).search, "query topk", {"query": "lamp"}) for kind in KINDS),
    *((kind.build, "documents encoder alpha", BUILDING) for kind in KINDS),
    (pr.HybridIndex.build, "passages surroundings dense_weight", BUILDING),
    (pr.DenseIndex.build, "chunks backend precision", BUILDING),
    (INDEX.search, "top_k filter vector returns", {"query": "lamp"}),
    (pr.PreciseRAG.from_documents, "documents encoder llm preset index_options", {"documents": DOCUMENTS}),
    (pr.PreciseRAG, "index llm judge rewriter reranker redundancy relevance evidence", {"index": INDEX}),
    (pr.PreciseRAG, "selector feedback n_candidates order", {"index": INDEX}),
    (pr.PreciseRAG, "prompts budget prices", {"index": INDEX, "llm": LLM}),
    *((kind, "budget prices", {"llm": LLM}) for kind in (pr.RelevanceFilter, pr.QueryRewriter)),
    (pr.Document, "id text metadata", {"id": "a", "text": "b"}),
    (pr.GradientSelector, "min_k ratio max_k max_tokens min_score share_of_best min_keep", {}),
    (pr.RedundancyFilter, "similarity_threshold prefilter", {}),
    (pr.DynamicThreshold, "tight min_score ceiling cap min_keep", {}),
    (pr.Budget, "calls tokens seconds cost", {}),
    (pr.FeedbackController, "accept max_rounds reach", {}),
    (pr.GreedySegmenter, "encoder threshold max_chars min_tokens", {"encoder": ENCODER}),
    (pr.Segmenter.from_pretrained, "name threshold max_tokens min_tokens paragraphs", {"name": "small"}),
    (pr.OpenAIChat, "base_url timeout max_retries", {"model": "m"}),
    (CohereReranker, "timeout batch_size", {}),
    (llamaindex_precise.PreciseRetriever.from_documents, "documents embed_model reranker evidence", NODES),
    (langchain_precise.PreciseRetriever.from_documents, "documents embeddings reranker evidence", PAGES),
    (llamaindex_precise.PreciseRetriever.from_store, "store", {}),
    (langchain_precise.PreciseRetriever.from_store, "store", {}),
    (llamaindex_precise.EvidencePostprocessor, "max_tokens", {}),
    (langchain_precise.EvidenceCompressor, "reranker max_tokens", {}),
    (COMPRESS, "documents query", {"documents": [], "query": "?"}),
    (langchain_precise.PreciseEmbeddings(ENCODER).embed_documents, "texts", {}),
    (llamaindex_precise.SemanticSegmentationNodeParser, "max_tokens model", {}),
    (langchain_precise.SemanticSegmentationTextSplitter().create_documents, "metadatas", {"texts": ["a"]}),
    (langchain_precise.SemanticSegmentationTextSplitter, "embeddings max_tokens model", {}),
    (llamaindex_precise.SelfFeedbackQueryEngine, "retriever llm judge", {"llm": LLM}),
    (langchain_precise.SelfFeedbackChain, "retriever llm judge", {"llm": LLM}),
]
CALLS = {
    f"{number} {function.__qualname__} {name}": (function, name, others)
    for number, (function, names, others) in enumerate(ARGUMENTS)
    for name in names.split()
}
"""A call for each argument: the function, the name of the argument, and the arguments beside it."""


def call_with(call: str, value: object) -> None:
    """Call, and do what a user does with the result."""
    function, name, others = CALLS[call]
    made = function(**{**others, name: value})
    if isinstance(made, KINDS):
        made.search("lamp")
    elif isinstance(made, Iterator):
        list(made)
    elif inspect.iscoroutine(made):
        asyncio.run(made)


@pytest.mark.parametrize("call", CALLS)
def test_a_value_of_the_wrong_kind_is_one_error(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    INDEX.save("saved")
    for what, value in ODD.items():
        try:
            with warnings.catch_warnings(), suppress(PreciseRagError):
                warnings.simplefilter("ignore", RuntimeWarning)
                call_with(call, value)
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error


def test_a_word_that_means_nothing_here_is_refused() -> None:
    engine = partial(llamaindex_precise.SelfFeedbackQueryEngine, rag=RAG)
    for call, said in (
        (lambda: list(read_documents("a", on_error="skip")), "on_error must be a function, got 'skip'"),
        (lambda: engine(streaming="no"), "streaming must be a bool, got str"),
        (lambda: engine(live_final="no"), "live_final must be a bool, got str"),
        (lambda: asyncio.run(RAG.abatch([{"query": "a", "filters": 1}])), "of answer, got {'query': 'a'"),
    ):
        with pytest.raises(InputError, match=said):
            call()


@pytest.mark.parametrize("made", CLASSES)
def test_no_class_takes_an_argument_that_it_does_not_have(made: type) -> None:
    known = {"rag": RAG, "llm": LLM, "index": INDEX, "encoder": ENCODER}
    given = {name: value for name, value in known.items() if name in inspect.signature(made).parameters}
    with pytest.raises((TypeError, PreciseRagError), match=r"bogus|takes no arg|its own retriever"):
        made(**given, bogus=1)


@pytest.mark.parametrize("count", [-1, 1.5, True, "x", None, float("nan"), [1, 2]])
def test_what_a_function_counts_is_a_whole_number(count: Any) -> None:
    text, ask = "The lamp is lit. " * 40, {"question": "When is the lamp lit?", "max_tokens": 40}
    with pytest.raises(PreciseRagError, match=r"^count_tokens must return a whole number"):
        pr.prune(text, **ask, count_tokens=lambda text: count)
    with pytest.raises(PreciseRagError, match=r"^count_tokens must be a function"):
        pr.prune(text, **ask, count_tokens=count or 5)
