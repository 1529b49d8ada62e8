import asyncio
from uuid import UUID

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter

from langchain_precise import PreciseEmbeddings, SemanticSegmentationTextSplitter
from precise_rag import Segmenter
from precise_rag.errors import InputError
from precise_rag.facts import read_facts
from precise_rag.index import weighted_chunks
from precise_rag.testing import HashEncoder
from precise_rag.types import Document as Source

TEXT = (
    "Rye bread is baked twice. The crust is dark. It keeps for a month.\n\n"
    "The town clock was built in 1911. It runs on a weight. It keeps for a month.\n\n"
    "In January the harbour freezes. Ice breakers keep a channel open."
)


@pytest.fixture(scope="module")
def splitter():
    return SemanticSegmentationTextSplitter(max_tokens=24)


def test_a_piece_adds_one_key_and_has_a_uuid_if_its_source_has_an_id(splitter):
    [first, *_] = splitter.split_documents([Document(TEXT, id="velm", metadata={"tags": ["town"]})])
    assert read_facts(first) == {"doc_id": "velm", "start": 0, "end": len(first.page_content)}
    assert set(first.metadata) == {"tags", "precise"}
    assert first.id == str(UUID(first.id))
    [nameless, *_] = splitter.split_documents([Document(TEXT)])
    assert (nameless.id, set(nameless.metadata)) == (None, {"precise"})


def test_what_belongs_to_the_caller_stays(splitter):
    own = {"doc_id": "mine", "start_index": 7, "end_index": "e", "relevance_score": "high", "id": 1}
    for piece in splitter.split_documents([Document(TEXT, id="velm", metadata=own)]):
        assert {name: piece.metadata[name] for name in own} == own
        assert read_facts(piece)["doc_id"] == "velm"


def test_embeddings_are_sent_to_the_splitter_that_takes_them():
    with pytest.raises(InputError, match="model must be"):
        SemanticSegmentationTextSplitter(PreciseEmbeddings(HashEncoder()))


def test_every_way_to_call_it_gives_the_same(splitter):
    source = Document(TEXT, id="velm")
    expected = splitter.split_documents([source])
    assert splitter.transform_documents([source]) == expected
    assert asyncio.run(splitter.atransform_documents([source])) == expected
    assert splitter.split_documents(iter([source])) == expected
    assert splitter.create_documents([TEXT], [{"a": 1}])[0].metadata["a"] == 1
    assert splitter.split_text(TEXT) == [piece.page_content for piece in expected]
    assert splitter.split_text(" \n") == []


def test_the_budget_is_in_the_units_of_the_length_function():
    in_characters = SemanticSegmentationTextSplitter(chunk_size=60)
    assert max(map(len, in_characters.split_text(TEXT))) <= 60
    in_words = SemanticSegmentationTextSplitter(chunk_size=9, length_function=lambda text: len(text.split()))
    sizes = [len(piece.split()) for piece in in_words.split_text(TEXT)]
    assert max(sizes) <= 9
    assert max(map(len, in_words.split_text(TEXT))) > 9


def test_a_tokenizer_sets_the_budget():
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    splitter = SemanticSegmentationTextSplitter.from_huggingface_tokenizer(fast, chunk_size=12)
    assert isinstance(splitter, SemanticSegmentationTextSplitter)
    assert max(len(fast.tokenize(piece)) for piece in splitter.split_text(TEXT)) <= 12


def test_whitespace_is_stripped_when_asked_and_offsets_still_hold():
    splitter = SemanticSegmentationTextSplitter(max_tokens=24, strip_whitespace=True)
    for piece in splitter.create_documents([f"\n\n {TEXT} \n"]):
        assert piece.page_content == piece.page_content.strip()
        start, end = read_facts(piece)["start"], read_facts(piece)["end"]
        assert f"\n\n {TEXT} \n"[start:end] == piece.page_content


def test_start_indices_are_written_on_request():
    pieces = SemanticSegmentationTextSplitter(max_tokens=24, add_start_index=True).create_documents([TEXT])
    assert [p.metadata["start_index"] for p in pieces] == [read_facts(p)["start"] for p in pieces]


def test_a_segmenter_that_is_ready_is_used_as_it_is():
    segmenter = Segmenter.from_pretrained("small", max_tokens=24)
    expected = [chunk.text for chunk in segmenter.segment(TEXT)]
    for splitter in (
        SemanticSegmentationTextSplitter(segmenter),
        SemanticSegmentationTextSplitter(max_tokens=24),
    ):
        assert isinstance(splitter, TextSplitter)
        assert splitter.split_text(TEXT) == expected
    with pytest.raises(InputError, match="chunk_size"):
        SemanticSegmentationTextSplitter(segmenter, chunk_size=10)


@pytest.mark.parametrize("overlap", [1, 200, -1])
def test_overlap_is_refused_with_a_reason(overlap):
    with pytest.raises(ValueError, match="do not overlap"):
        SemanticSegmentationTextSplitter(chunk_overlap=overlap)


def test_greedy_pieces_follow_the_vectors_and_the_limit():
    text = "Rye bread is very dark. Rye bread is very hard. The eels swim away. The eels swim far."

    def greedy(**options):
        given = {"embeddings": HashEncoder(), "threshold": 0.5, **options}
        return SemanticSegmentationTextSplitter("greedy", **given)

    pieces = greedy().split_documents([Document(text)])
    assert [piece.page_content for piece in pieces] == [
        "Rye bread is very dark. Rye bread is very hard. ",
        "The eels swim away. The eels swim far.",
    ]
    short = greedy(chunk_size=24)
    assert [read_facts(piece)["start"] for piece in short.create_documents([text])] == [0, 24, 48, 68]
    assert short.split_text(" ") == []
    words = greedy(chunk_size=5, length_function=lambda t: len(t.split()))
    assert [len(piece.split()) for piece in words.split_text(text)] == [5, 5, 4, 4]


def test_one_argument_gives_vectors_in_context():
    encoder = HashEncoder()
    splitter = SemanticSegmentationTextSplitter(max_tokens=8, embeddings=PreciseEmbeddings(encoder))
    pieces = splitter.split_documents([Document(TEXT, id="velm")])
    texts = [piece.page_content for piece in pieces]
    vectors = splitter.embeddings.embed_documents([*texts, "another text"])
    expected = [piece.vector for piece in weighted_chunks([Source("d", TEXT)], encoder, splitter._segmenter)]
    np.testing.assert_allclose(vectors[:-1], expected, atol=1e-6)
    np.testing.assert_allclose(vectors[-1], encoder.encode(["another text"])[0], atol=1e-6)
    assert len(splitter.embeddings.embed_query("lamp")) == encoder.dimension


def test_the_default_limit_is_that_of_stock_splitters():
    text = "The lamp is lit at dusk. Ilse keeps it, and Jonas rows. " * 400
    pieces = SemanticSegmentationTextSplitter().split_text(text)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 4000
    assert min(map(len, pieces)) > 1000
