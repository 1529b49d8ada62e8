"""Indexes, pipelines and clients in other processes: as copies by pickle, and after a fork."""

import copy
import multiprocessing
import pickle
import threading

import pytest

from precise_rag import Document, PreciseRAG, RelevanceFilter, Segmenter, load_reranker
from precise_rag._processes import ProcessLock
from precise_rag.candidate_filters import RedundancyFilter
from precise_rag.encoders import load_encoder
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import LLMAuthenticationError
from precise_rag.index import DenseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex, load_index
from precise_rag.llm.openai import OpenAIChat
from precise_rag.rerank.cohere import CohereReranker
from precise_rag.segmentation import GreedySegmenter
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.types import Message
from support.children import has_fork, in_child

KEY = "sk-not-a-key-of-anyone-1234567890"
QUESTION = "Who lit the lamp in 1803?"
DOCUMENTS = [Document(f"d{i}", f"Keeper {i} lit the lamp. The sea was calm in {1800 + i}.") for i in range(8)]


def found(index):
    return [(c.id, round(c.score, 5)) for c in index.search("who lit the lamp in 1803", 4)]


def pickled(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
@pytest.mark.parametrize("kind", [HybridIndex, SentenceContextIndex, WordSentenceIndex, DenseIndex])
def test_an_index_is_copied_with_its_rows(kind, copied, tmp_path):
    index = kind.build(DOCUMENTS, HashEncoder())
    expected = found(index)
    index.save(tmp_path / "index")
    for original in (index, kind.load(tmp_path / "index", HashEncoder())):
        twin = copied(original)
        assert found(twin) == expected
        twin.add([Document("new", "A wholly unseen wordling.")])
        assert twin.search("wordling unseen", 1)[0].doc_id == "new"
        assert found(original) == expected
        assert "new" not in original.document_ids


def test_an_index_is_copied_while_another_thread_adds_to_it():
    index, stop = HybridIndex.build(DOCUMENTS, HashEncoder()), threading.Event()

    def add():
        number = 0
        while not stop.is_set():
            number += 1
            index.add([Document(f"n{number % 7}", f"Brand new word{number} and other{number}.")])

    thread = threading.Thread(target=add)
    thread.start()
    try:
        twins = [pickled(index) for _ in range(20)]
    finally:
        stop.set()
        thread.join()
    for twin in twins:
        assert twin.search("keeper lamp", 2)
        twin.add([Document("last", "The last wordling.")])
        assert twin.search("wordling", 1)[0].doc_id == "last"


def test_pipelines_and_retrievers_of_both_frameworks_are_copied():
    langchain = pytest.importorskip("langchain_precise")
    llamaindex = pytest.importorskip("llamaindex_precise")
    rag = PreciseRAG.from_documents(DOCUMENTS, OpenAIChat("m", api_key=KEY), encoder=HashEncoder())
    retriever = langchain.PreciseRetriever.from_index(rag.index)
    other = llamaindex.PreciseRetriever.from_index(rag.index)
    for copied in (copy.deepcopy, pickled):
        assert copied(rag).retrieve(QUESTION) == rag.retrieve(QUESTION)
        assert copied(retriever).invoke(QUESTION) == retriever.invoke(QUESTION)
        assert [n.node_id for n in copied(other).retrieve(QUESTION)] == [
            n.node_id for n in other.retrieve(QUESTION)
        ]


@pytest.mark.parametrize(
    "part",
    [
        load_reranker("cascade"),
        load_reranker("some/cross-encoder"),
        Segmenter.from_pretrained("sage"),
        GreedySegmenter(HashEncoder()),
        RedundancyFilter(encoder=HashEncoder()),
        RelevanceFilter(ScriptedLLM(["yes"])),
        ProcessLock(),
    ],
    ids=lambda part: type(part).__name__,
)
def test_stages_are_copied(part):
    for twin in (copy.deepcopy(part), copy.copy(part), pickled(part)):
        assert type(twin) is type(part)
        assert getattr(twin, "name", None) == getattr(part, "name", None)


@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIEncoder, CohereReranker])
def test_a_client_is_copied_without_its_key_and_takes_that_of_its_worker(kind, monkeypatch):
    client = kind("m", api_key=KEY, base_url="http://localhost:1")
    assert copy.deepcopy(client) is client
    twin = pickled(client)
    assert twin.name == client.name
    assert KEY.encode() not in pickle.dumps(client)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if kind is OpenAIChat:
        with pytest.raises(LLMAuthenticationError, match="OPENAI_API_KEY"):
            twin.complete([Message("user", "Hello?")])


def test_workers_that_are_spawned_search_too():
    index = HybridIndex.build(DOCUMENTS, HashEncoder())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(found, (index,)) == found(index)


@has_fork
def test_a_child_goes_on_after_a_fork_in_the_middle_of_an_add(tmp_path):
    encoding, go_on = threading.Event(), threading.Event()

    class Slow(HashEncoder):
        def encode(self, texts, **options):
            if any("slow" in text for text in texts):
                encoding.set()
                go_on.wait(60)
            return super().encode(texts, **options)

    index = HybridIndex.build(DOCUMENTS, Slow())
    expected = found(index)
    slow = [Document("quick", "Quick wordlings come first. " * 9_000), Document("slow", "A slow wordling.")]
    thread = threading.Thread(target=index.add, args=(slow,))
    thread.start()
    assert encoding.wait(60)

    def work():
        before = found(index)
        index.add([Document("new", "An unseen beacon.")])
        index.save(tmp_path / "index")
        loaded = load_index(tmp_path / "index", HashEncoder())
        return before, index.search("beacon", 1)[0].doc_id, loaded.search("beacon", 1)[0].doc_id

    try:
        assert in_child(work) == (expected, "new", "new")
    finally:
        go_on.set()
        thread.join(60)
    assert "slow" in index.document_ids


@has_fork
def test_the_networks_of_a_pipeline_run_in_a_child_too():
    rag = PreciseRAG.from_documents(DOCUMENTS, encoder=load_encoder(device="cpu"))
    expected = rag.retrieve(QUESTION)
    assert in_child(lambda: rag.retrieve(QUESTION)) == expected


@has_fork
def test_torch_computes_in_a_child_of_a_process_that_used_its_threads():
    torch = pytest.importorskip("torch")
    rows = torch.ones(2_000, 2_000)
    total = float((rows @ rows).sum())
    assert in_child(lambda: float((rows @ rows).sum())) == total
