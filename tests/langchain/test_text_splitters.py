import asyncio
import copy
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter

from langchain_precise import PreciseEmbeddings, SemanticSegmentationTextSplitter
from langchain_precise.papers import GreedySemanticTextSplitter
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


def test_it_is_a_text_splitter_with_the_cores_cuts(splitter):
    chunks = Segmenter.from_pretrained("small", max_tokens=24).segment(TEXT)
    assert isinstance(splitter, TextSplitter)
    assert len(chunks) > 1
    assert splitter.split_text(TEXT) == [chunk.text for chunk in chunks]
    assert [(read_facts(d)["start"], read_facts(d)["end"]) for d in splitter.create_documents([TEXT])] == [
        (chunk.start, chunk.end) for chunk in chunks
    ]


def test_pieces_keep_the_metadata_and_the_id_of_their_source(splitter):
    source = Document(TEXT, id="velm", metadata={"tags": ["town"]})
    before = copy.deepcopy(source)

    first, *rest = splitter.split_documents([source])

    assert read_facts(first) == {"doc_id": "velm", "start": 0, "end": len(first.page_content)}
    assert set(first.metadata) == {"tags", "precise"}
    assert first.id == str(UUID(first.id)) == splitter.split_documents([source])[0].id
    assert len({piece.id for piece in (first, *rest)}) == 1 + len(rest)
    first.metadata["tags"].append("changed")
    assert source == before
    assert rest[0].metadata["tags"] == ["town"]


def test_a_nameless_source_gives_nameless_pieces(splitter):
    piece = splitter.split_documents([Document(TEXT)])[0]
    assert piece.id is None
    assert set(piece.metadata) == {"precise"}


def test_what_belongs_to_the_caller_stays(splitter):
    own = {"doc_id": "mine", "start_index": 7, "end_index": "e", "relevance_score": "high", "id": 1}
    for piece in splitter.split_documents([Document(TEXT, id="velm", metadata=own)]):
        assert {name: piece.metadata[name] for name in own} == own
        assert read_facts(piece)["doc_id"] == "velm"


@pytest.mark.parametrize(
    "name", ["separators", "keep_separator", "breakpoint_threshold_type", "min_chunk_size"]
)
@pytest.mark.parametrize("cls", [SemanticSegmentationTextSplitter, GreedySemanticTextSplitter])
def test_options_of_other_splitters_are_refused_with_the_reason(cls, name):
    with pytest.raises(InputError, match=f"{name} is not an option here: .+"):
        cls(**{name: None})


def test_embeddings_are_sent_to_the_splitter_that_takes_them():
    with pytest.raises(InputError, match="pass embeddings as embeddings="):
        SemanticSegmentationTextSplitter(PreciseEmbeddings(HashEncoder()))


def test_offsets_are_in_the_first_source_when_splitters_are_chained(splitter):
    coarse = splitter.split_documents([Document(TEXT, id="velm")])
    fine = SemanticSegmentationTextSplitter(max_tokens=8).split_documents(coarse)
    assert len(fine) > len(coarse)
    for piece in fine:
        assert TEXT[read_facts(piece)["start"] : read_facts(piece)["end"]] == piece.page_content
        assert read_facts(piece)["doc_id"] == "velm"


def test_repeated_sentences_have_offsets_of_their_own(splitter):
    pieces = splitter.create_documents(["The same again. " * 30])
    starts = [read_facts(piece)["start"] for piece in pieces]
    assert starts == sorted(set(starts))
    assert starts[0] == 0


@pytest.mark.parametrize("blank", ["", " ", "\n\n \t"])
def test_blank_text_has_no_pieces(splitter, blank):
    assert splitter.split_text(blank) == []
    assert splitter.split_documents([Document(blank), Document("A word."), Document(blank)])[
        0
    ].page_content == ("A word.")


def test_every_way_to_call_it_gives_the_same(splitter):
    source = Document(TEXT, id="velm")
    expected = splitter.split_documents([source])
    assert splitter.transform_documents([source]) == expected
    assert asyncio.run(splitter.atransform_documents([source])) == expected
    assert splitter.split_documents(iter([source])) == expected
    assert splitter.create_documents([TEXT], [{"a": 1}])[0].metadata["a"] == 1


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
    assert SemanticSegmentationTextSplitter(segmenter).split_text(TEXT) == [
        c.text for c in segmenter.segment(TEXT)
    ]
    with pytest.raises(InputError, match="chunk_size"):
        SemanticSegmentationTextSplitter(segmenter, chunk_size=10)


@pytest.mark.parametrize("overlap", [1, 200, -1])
def test_overlap_is_refused_with_a_reason(overlap):
    with pytest.raises(ValueError, match="do not overlap"):
        SemanticSegmentationTextSplitter(chunk_overlap=overlap)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=3))
def test_pieces_tile_every_text(texts):
    pieces = SPLITTER.create_documents(texts, [{"text": i} for i in range(len(texts))])
    for i, text in enumerate(texts):
        mine = [piece for piece in pieces if piece.metadata["text"] == i]
        assert "".join(piece.page_content for piece in mine) == (text if text.strip() else "")
        assert [text[read_facts(p)["start"] : read_facts(p)["end"]] for p in mine] == [
            p.page_content for p in mine
        ]


SPLITTER = SemanticSegmentationTextSplitter(max_tokens=6)


def test_greedy_pieces_follow_the_vectors_and_the_limit():
    text = "Rye bread is very dark. Rye bread is very hard. The eels swim away. The eels swim far."
    pieces = GreedySemanticTextSplitter(HashEncoder(), threshold=0.5).split_text(text)
    assert pieces == [
        "Rye bread is very dark. Rye bread is very hard. ",
        "The eels swim away. The eels swim far.",
    ]
    short = GreedySemanticTextSplitter(HashEncoder(), threshold=0.5, chunk_size=24)
    assert [read_facts(piece)["start"] for piece in short.create_documents([text])] == [0, 24, 48, 68]
    assert short.split_text(" ") == []
    words = GreedySemanticTextSplitter(HashEncoder(), chunk_size=5, length_function=lambda t: len(t.split()))
    assert [len(piece.split()) for piece in words.split_text(text)] == [5, 5, 4, 4]
    with pytest.raises(InputError, match="do not overlap"):
        GreedySemanticTextSplitter(HashEncoder(), chunk_overlap=20)


def test_pieces_carry_the_titles_above_them_and_own_keys_stay():
    text = "# Velm\n\n" + "The lamp is lit at dusk.\n\n" * 9 + "## Ferry\n\n" + "It sails at nine.\n\n" * 40
    pieces = SemanticSegmentationTextSplitter(max_tokens=60).split_documents([Document(text, id="velm")])
    assert "header_path" not in pieces[0].metadata
    assert "/Velm/Ferry/" in [piece.metadata.get("header_path") for piece in pieces]
    own = Document(text, id="velm", metadata={"header_path": "mine"})
    kept = SemanticSegmentationTextSplitter(max_tokens=60).split_documents([own])
    assert {piece.metadata["header_path"] for piece in kept} == {"mine"}


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
