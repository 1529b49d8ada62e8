"""Indexes, pipelines and clients are copied by pickle, and sent to workers."""

import copy
import multiprocessing
import os
import pickle
import signal
import threading

import numpy as np
import pytest

from precise_rag import (
    Document,
    GradientSelector,
    PreciseRAG,
    RelevanceFilter,
    Segmenter,
    load_reranker,
)
from precise_rag._pickling import Portable
from precise_rag._processes import ProcessLock
from precise_rag.candidate_filters import RedundancyFilter
from precise_rag.encoders import CachedEncoder
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import InputError, LLMAuthenticationError
from precise_rag.index import (
    HybridIndex,
)
from precise_rag.llm.openai import OpenAIChat
from precise_rag.rerank.cohere import CohereReranker
from precise_rag.segmentation import GreedySegmenter
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace import Ledger
from precise_rag.types import Message
from support.carried_over import DOCUMENTS, INDEXES, found
from support.children import has_fork, in_child

KEY = "sk-not-a-key-of-anyone-1234567890"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("kind", INDEXES)
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
        twins = [pickle.loads(pickle.dumps(index)) for _ in range(20)]
    finally:
        stop.set()
        thread.join()
    for twin in twins:
        assert twin.search("keeper lamp", 2)
        twin.add([Document("last", "The last wordling.")])
        assert twin.search("wordling", 1)[0].doc_id == "last"


@pytest.mark.parametrize(
    "make",
    [
        lambda: PreciseRAG.from_documents(DOCUMENTS, ScriptedLLM(["yes"]), encoder=HashEncoder()),
        lambda: PreciseRAG.from_documents(DOCUMENTS, OpenAIChat("m", api_key=KEY), encoder=HashEncoder()),
    ],
)
def test_a_pipeline_is_copied(make):
    rag = make()
    for twin in (copy.deepcopy(rag), pickle.loads(pickle.dumps(rag))):
        assert twin.retrieve("Who lit the lamp?") == rag.retrieve("Who lit the lamp?")


def test_components_of_both_frameworks_are_copied():
    langchain = pytest.importorskip("langchain_precise")
    llamaindex = pytest.importorskip("llamaindex_precise")
    index = HybridIndex.build(DOCUMENTS, HashEncoder())
    question = "Who lit the lamp?"
    retriever = langchain.papers.HybridRetriever.from_index(index)
    whole = langchain.PreciseRetriever.from_index(index)
    other = llamaindex.papers.HybridRetriever.from_index(index)
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        assert copied(retriever).invoke(question) == retriever.invoke(question)
        assert copied(whole).invoke(question) == whole.invoke(question)
        assert [n.node_id for n in copied(other).retrieve(question)] == [
            n.node_id for n in other.retrieve(question)
        ]
        assert copied(llamaindex.PreciseEmbedding()).model_name == llamaindex.PreciseEmbedding().model_name
        assert copied(langchain.papers.RerankCompressor()).name == langchain.papers.RerankCompressor().name


@pytest.mark.parametrize(
    "part",
    [
        load_reranker("packaged"),
        load_reranker("cascade"),
        load_reranker("some/cross-encoder"),
        Segmenter.from_pretrained("small"),
        Segmenter.from_pretrained("sage-minilm"),
        GreedySegmenter(HashEncoder()),
        GradientSelector(),
        RedundancyFilter(encoder=HashEncoder()),
        RelevanceFilter(ScriptedLLM(["yes"])),
        Ledger(),
        ProcessLock(),
    ],
    ids=lambda part: type(part).__name__,
)
def test_stages_are_copied(part):
    for twin in (copy.deepcopy(part), copy.copy(part), pickle.loads(pickle.dumps(part))):
        assert type(twin) is type(part)
        assert getattr(twin, "name", None) == getattr(part, "name", None)


def test_a_cached_encoder_is_copied(tmp_path):
    encoder = CachedEncoder(HashEncoder(), tmp_path / "cache.sqlite")
    twin = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_allclose(twin.encode(["a lamp"]), encoder.encode(["a lamp"]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: OpenAIChat("m", api_key=KEY, base_url="http://localhost:1"),
        lambda: OpenAIEncoder("m", api_key=KEY, base_url="http://localhost:1"),
        lambda: CohereReranker("m", api_key=KEY, base_url="http://localhost:1"),
    ],
)
def test_a_pickled_client_has_no_key(make):
    client = make()
    saved = pickle.dumps(client)
    assert KEY.encode() not in saved
    assert pickle.loads(saved).name == client.name
    assert copy.deepcopy(client) is client


def test_an_unpickled_chat_model_takes_the_key_of_its_worker(monkeypatch):
    pytest.importorskip("openai")
    saved = pickle.dumps(OpenAIChat("m", api_key=KEY, base_url="http://localhost:1"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LLMAuthenticationError, match="OPENAI_API_KEY"):
        pickle.loads(saved).complete([Message("user", "Hello?")])
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert pickle.loads(saved)._key == KEY


class Unpicklable(HashEncoder):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


def test_what_cannot_be_pickled_is_named_with_what_to_do():
    with pytest.raises(InputError, match=r"HybridIndex .* its encoder, of type Unpicklable.*load_index"):
        pickle.dumps(HybridIndex.build(DOCUMENTS, Unpicklable()))
    rag = PreciseRAG.from_documents(DOCUMENTS, lambda prompt: "yes", encoder=HashEncoder())
    with pytest.raises(InputError, match=r"function.*make it in the worker"):
        pickle.dumps(rag)
    with pytest.raises(InputError, match="selector"):
        pickle.dumps(PreciseRAG(rag.index, selector=GradientSelector(count_tokens=lambda text: 1)))


def test_cloudpickle_takes_the_functions_that_pickle_refuses():
    cloudpickle = pytest.importorskip("cloudpickle")
    rag = PreciseRAG.from_documents(DOCUMENTS, lambda prompt: "yes", encoder=HashEncoder())
    assert cloudpickle.loads(cloudpickle.dumps(rag)).llm is not None
    with pytest.raises(InputError, match="make it in the worker"):
        pickle.dumps(rag)


@has_fork
def test_a_killed_worker_hangs_nobody():
    from tqdm import tqdm

    def die():
        tqdm.get_lock().acquire()
        os.kill(os.getpid(), signal.SIGKILL)

    tqdm.get_lock()
    victim = multiprocessing.get_context("fork").Process(target=die)
    victim.start()
    victim.join(30)
    assert victim.exitcode == -signal.SIGKILL
    assert in_child(lambda: len(found(HybridIndex.build(DOCUMENTS, HashEncoder())))) == 4
    assert len(found(HybridIndex.build(DOCUMENTS, HashEncoder()))) == 4


def test_workers_that_are_spawned_search_too():
    index = HybridIndex.build(DOCUMENTS, HashEncoder())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(found, (index,)) == found(index)


def test_a_part_that_says_itself_what_is_wrong_is_not_pickled_twice():
    class Part(Portable):
        def __init__(self, part):
            self.part = part

    whole = Part(Part(threading.Lock()))
    with pytest.raises(InputError, match="its part, of type lock"):
        whole.part.__getstate__()
    assert whole.__getstate__() == vars(whole)
