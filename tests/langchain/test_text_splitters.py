"""What LangChain asks of text splitters; what they cut is in tests/adapters."""

import asyncio
import copy
from uuid import UUID

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.prompts import format_document
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_precise import (
    DOCUMENT_PROMPT,
    PreciseEmbeddings,
    PreciseRetriever,
    SemanticSegmentationTextSplitter,
    SentenceContextTextSplitter,
    text_splitters,
)
from precise_rag import Segmenter
from precise_rag.encoders.local import MINILM, packaged_encoder
from precise_rag.errors import InputError
from precise_rag.facts import read_facts
from precise_rag.index import weighted_chunks
from precise_rag.testing import HashEncoder
from precise_rag.types import Document as Source
from support.segmentation import TOWN as TEXT


@pytest.fixture(scope="module")
def splitter():
    return SemanticSegmentationTextSplitter(max_tokens=24)


def test_a_piece_adds_two_keys_to_those_of_the_caller_and_has_a_uuid_if_its_source_has_an_id(splitter):
    own = {"doc_id": "mine", "start_index": 7, "end_index": "e", "relevance_score": "high", "id": 1}
    own["precise"] = '{"score": 0.5, "score_scale": "probability", "passage": [0, 9]}'  # of the whole
    for piece in splitter.split_documents([Document(TEXT, id="velm", metadata=own)]):
        facts = read_facts(piece)
        assert facts.keys() == {"doc_id", "start", "end"}
        assert (facts["doc_id"], TEXT[facts["start"] : facts["end"]]) == ("velm", piece.page_content)
        assert piece.metadata == {**own, "precise": piece.metadata["precise"], "section": ""}
        assert piece.id == str(UUID(piece.id))
    [nameless, *_] = splitter.split_documents([Document(TEXT)])
    assert (nameless.id, set(nameless.metadata)) == (None, {"precise", "section"})


def test_chains_and_retrievers_write_the_section_of_a_piece_also_if_it_was_cut_twice(splitter):
    text = "It is shut.\n\n## Oil\n\nOne litre is enough. " + TEXT
    pieces = splitter.split_documents(splitter.create_documents([text], [{"header_path": "/Mill/Yard/"}]))
    written = [format_document(piece, DOCUMENT_PROMPT) for piece in pieces]
    assert (written[0].split("\n")[0], written[-1].split("\n")[0]) == ("Mill > Yard", "Mill > Oil")
    for piece in pieces:
        piece.metadata["h3"] = "Pump"  # as another splitter behind ours
    (found,) = PreciseRetriever.from_documents(pieces, HashEncoder(), k=1).invoke(pieces[-1].page_content)
    assert found.metadata["section"] == "Mill > Oil > Pump"


def test_every_way_to_call_it_gives_the_same(splitter):
    source = Document(TEXT, id="velm")
    expected = splitter.split_documents([source])
    assert splitter.transform_documents([source]) == expected
    assert asyncio.run(splitter.atransform_documents([source])) == expected
    assert splitter.split_documents(iter([source])) == expected
    assert splitter.create_documents([TEXT], [{"a": 1}])[0].metadata["a"] == 1
    assert splitter.split_text(TEXT) == [piece.page_content for piece in expected]
    assert splitter.split_text(" \n") == []


def test_the_limit_is_in_the_units_of_the_length_function():
    in_characters = SemanticSegmentationTextSplitter(chunk_size=60)
    assert max(map(len, in_characters.split_text(TEXT))) <= 60
    long = "The lamp is lit at dusk. Ilse keeps it, and Jonas rows. " * 400
    stock = SemanticSegmentationTextSplitter().split_text(long)
    assert 1000 < min(map(len, stock)) <= max(map(len, stock)) <= 4000
    text = "Rye bread is very dark. Rye bread is very hard. The eels swim away. The eels swim far."
    options = {"embeddings": HashEncoder(), "threshold": 0.5}
    short = SemanticSegmentationTextSplitter("greedy", chunk_size=24, **options)
    assert [read_facts(piece)["start"] for piece in short.create_documents([text])] == [0, 24, 48, 68]
    options |= {"chunk_size": 5, "length_function": lambda piece: len(piece.split())}
    words = SemanticSegmentationTextSplitter("greedy", **options)
    assert [len(piece.split()) for piece in words.split_text(text)] == [5, 5, 4, 4]


def test_a_tokenizer_sets_the_limit():
    transformers = pytest.importorskip("transformers")
    file = str(packaged_encoder(MINILM) / "tokenizer.json")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=file)
    splitter = SemanticSegmentationTextSplitter.from_huggingface_tokenizer(fast, chunk_size=12)
    assert isinstance(splitter, SemanticSegmentationTextSplitter)
    assert max(len(fast.tokenize(piece)) for piece in splitter.split_text(TEXT)) <= 12


def test_whitespace_is_stripped_and_start_indices_are_written_when_asked_and_offsets_hold():
    text, options = f"\n\n {TEXT} \n", {"strip_whitespace": True, "add_start_index": True}
    for piece in SemanticSegmentationTextSplitter(max_tokens=24, **options).create_documents([text]):
        assert piece.page_content == piece.page_content.strip()
        facts = read_facts(piece)
        assert text[facts["start"] : facts["end"]] == piece.page_content
        assert piece.metadata["start_index"] == facts["start"]


def test_a_segmenter_is_used_as_it_is_and_options_that_cannot_be_kept_are_refused_with_a_reason():
    make, segmenter = SemanticSegmentationTextSplitter, Segmenter.from_pretrained("small", max_tokens=24)
    assert make(segmenter).split_text(TEXT) == [chunk.text for chunk in segmenter.segment(TEXT)]
    for refused, message in (
        (lambda: make(segmenter, chunk_size=10), "chunk_size"),
        (lambda: make(chunk_overlap=200), "do not overlap"),
        (lambda: make(chunk_size=10, count_tokens=len), "exclude"),
        (lambda: make(max_tokens=10, length_function=len), "exclude"),
        (lambda: make().create_documents(TEXT), "texts must be a list of str objects, got str"),
        (lambda: make().create_documents([TEXT, TEXT], [{}]), "got 1 for 2"),
        (lambda: make(separators=[" "]), "a segmenter has no option 'separators'"),
        (lambda: make(PreciseEmbeddings(HashEncoder())), "model must be"),
    ):
        with pytest.raises(InputError, match=message):
            refused()


INTRO = {"mill": "The mill is old.", "pool": "The pool is warm.", "well": "The well is deep."}


def kept_by_an_index(splitter, *runs):
    """The vectors of a store by document and text, after runs of `index` over the documents of some names."""
    manager, store = InMemoryRecordManager("r"), InMemoryVectorStore(splitter.embeddings)
    manager.create_schema()
    for names in runs:
        documents = [Document(f"{INTRO[key]} It opens at nine.", metadata={"source": key}) for key in names]
        options = {"cleanup": "incremental", "source_id_key": "source", "key_encoder": "sha256"}
        index(splitter.split_documents(documents), manager, store, batch_size=3, **options)
    return {(one["metadata"]["source"], one["text"]): one["vector"] for one in store.store.values()}


def test_equal_sentences_have_vectors_of_their_own_contexts_in_any_order_also_where_a_store_skips():
    splitter = SentenceContextTextSplitter(embeddings=HashEncoder())
    embed = splitter.embeddings.embed_documents
    pieces = [splitter.split_text(f"{intro} It opens at nine.")[1] for intro in INTRO.values()]
    mill, pool, well = embed(pieces)
    assert len({*map(tuple, (mill, pool, well))}) == 3
    assert embed([pieces[2], *pieces]) == [well, mill, pool, well]
    assert embed(copy.deepcopy(pieces[:1])) == [mill]
    plain = HashEncoder().encode(["It opens at nine."])[0]
    np.testing.assert_allclose(embed(["".join([*"It opens at nine."])])[0], plain, atol=1e-6)
    alone = SentenceContextTextSplitter(embeddings=HashEncoder())
    [*_, read] = alone.split_text(f"{INTRO['mill']} It opens at nine.")
    assert alone.embeddings.embed_documents(["".join([*read])]) == [mill]
    at_once = kept_by_an_index(SentenceContextTextSplitter(HashEncoder()), INTRO)
    nightly = kept_by_an_index(SentenceContextTextSplitter(HashEncoder()), ["mill", "pool"], INTRO)
    assert nightly == at_once


def test_the_pieces_of_many_splits_are_forgotten_but_none_of_the_last_one(monkeypatch):
    monkeypatch.setattr(text_splitters, "_KNOWN", 4)
    splitter = SentenceContextTextSplitter(embeddings=HashEncoder())
    for _ in range(9):
        few = splitter.split_text(TEXT[:90])
        assert 0 < len(few) <= len(splitter.embeddings._known) <= 4
    many = splitter.split_documents([Document(TEXT)] * 3)
    assert len(splitter.embeddings._known) == len(many) > 4


def test_one_argument_gives_vectors_in_context_and_another_a_progress_bar(capsys):
    encoder, options = HashEncoder(), {"max_tokens": 8, "show_progress": True}
    splitter = SemanticSegmentationTextSplitter(embeddings=PreciseEmbeddings(encoder), **options)
    pieces = splitter.split_documents([Document(TEXT, id="velm")])
    texts = [piece.page_content for piece in pieces]
    assert "1/1" in capsys.readouterr().err
    vectors = splitter.embeddings.embed_documents([*texts, "another text"])
    expected = [piece.vector for piece in weighted_chunks([Source("d", TEXT)], encoder, splitter._segmenter)]
    np.testing.assert_allclose(vectors[:-1], expected, atol=1e-6)
    np.testing.assert_allclose(vectors[-1], encoder.encode(["another text"])[0], atol=1e-6)
    assert len(splitter.embeddings.embed_query("lamp")) == encoder.dimension


def test_pieces_of_a_document_without_an_id_stay_when_the_text_after_them_changes(splitter):
    def split(*texts, **metadata):
        return splitter.split_documents(
            [Document(text, metadata={"source": "a", **metadata}) for text in texts]
        )

    before, after = split(TEXT), split(f"{TEXT}\n\nEels are smoked.")
    assert before[:-1] == after[: len(before) - 1] != []
    names = {read_facts(piece)["doc_id"] for piece in (*split(TEXT, TEXT), *split(TEXT, tenant="b"))}
    assert len(names) == 3
