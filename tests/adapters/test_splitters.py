"""Node parsers and text splitters: what they cut lies in its document at the place that it names."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.utils import get_tokenizer

from precise_rag import Segmenter, read_facts
from precise_rag.errors import InputError
from precise_rag.segmentation import GreedySegmenter
from precise_rag.testing import HashEncoder
from support.frameworks import LANGCHAIN, LLAMAINDEX, each_framework
from support.segmentation import TOWN as TEXT
from support.segmentation import any_text
from support.velm import CORE, documents

KINDS: dict[str, dict[str, Any]] = {
    "trained": {"max_tokens": 24},
    "greedy": {"model": "greedy", "embed_model": HashEncoder(), "chunk_size": 24},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def count_words(text):
    return len(text.split())


@pytest.mark.parametrize(
    ("framework", "options"),
    [
        (LLAMAINDEX, {"max_tokens": 17, "tokenizer": str.split}),
        (LANGCHAIN, {"chunk_size": 17, "length_function": count_words, "add_start_index": True}),
    ],
)
def test_pieces_are_those_of_the_core(framework, options):
    limits = {"max_tokens": 17, "count_tokens": lambda texts: [*map(count_words, texts)]}
    trained = framework.splitter("SemanticSegmentation", **options)
    assert_same_pieces(framework, trained, Segmenter.from_pretrained(**limits))
    greedy = framework.splitter("SemanticSegmentation", model="greedy", embed_model=HashEncoder())
    assert_same_pieces(framework, greedy, GreedySegmenter(HashEncoder()))
    with pytest.raises(InputError, match='model="greedy" needs'):
        framework.splitter("SemanticSegmentation", model="greedy")


def assert_same_pieces(framework, splitter, segmenter):
    chunks = [chunk for document in CORE for chunk in segmenter.segment(document)]
    pieces = framework.split(splitter, documents(framework))
    assert [(*framework.place(p), framework.text(p)) for p in pieces] == [
        (c.doc_id, c.start, c.end, c.text) for c in chunks
    ]
    assert [framework.metadata(p)["title"] for p in pieces] == [c.doc_id for c in chunks]
    assert len(chunks) > 4


@settings(max_examples=40)
@given(text=any_text, limit=st.integers(12, 60))
def test_the_limit_holds_for_other_tokenizers(text, limit):
    """Also where they read across the white space between sentences, as those of GPT do."""
    tokenizer = get_tokenizer()
    node_parser = LLAMAINDEX.splitter("SemanticSegmentation", max_tokens=limit)
    splitter = LANGCHAIN.splitter(
        "SemanticSegmentation", chunk_size=limit, length_function=lambda piece: len(tokenizer(piece))
    )
    for framework, one in ((LLAMAINDEX, node_parser), (LANGCHAIN, splitter)):
        pieces = framework.split(one, [framework.document(text, "d")])
        lengths = [len(tokenizer(framework.text(piece))) for piece in pieces]
        assert max(lengths, default=0) <= limit


@each_framework
@each_kind
def test_pieces_have_the_metadata_of_their_document_which_stays_as_it_is(framework, kind):
    source = framework.document(TEXT, "velm", tags=["town"])
    before, splitter = copy.deepcopy(source), framework.splitter("SemanticSegmentation", **KINDS[kind])
    first, *rest = framework.split(splitter, [source])
    ids = [framework.id(piece) for piece in (first, *rest)]
    assert len(set(ids)) == len(ids) > 1
    assert ids == [framework.id(piece) for piece in framework.split(splitter, [source])]
    framework.metadata(first)["tags"].append("changed")
    assert source == before
    assert framework.metadata(rest[0])["tags"] == ["town"]


@each_framework
@each_kind
def test_pieces_of_pieces_have_their_place_in_the_document(framework, kind):
    coarse = framework.split(
        framework.splitter("SemanticSegmentation", max_tokens=40), [framework.document(TEXT, "velm")]
    )
    given = [getattr(piece, "node", piece) for piece in coarse]
    fine = framework.split(framework.splitter("SemanticSegmentation", **KINDS[kind]), given)
    assert len(fine) > len(coarse)
    for piece in fine:
        doc_id, start, end = framework.place(piece)
        assert (doc_id, TEXT[start:end]) == ("velm", framework.text(piece))


@each_framework
def test_pieces_carry_the_titles_above_them_below_those_of_their_source(framework):
    text = "# Velm\n\n" + "The lamp is lit at dusk.\n\n" * 9 + "## Ferry\n\n" + "It sails at nine.\n\n" * 40
    plain = framework.splitter("SemanticSegmentation", max_tokens=60)
    weighted = framework.splitter("SemanticSegmentation", max_tokens=60, embed_model=HashEncoder())
    for splitter in (plain, weighted):
        found = framework.split(splitter, [framework.document(text, "velm")])
        paths = [framework.metadata(piece).get("header_path") for piece in found]
        assert paths[0] is None
        assert "/Velm/Ferry/" in paths
    text = "It is shut.\n\n## In/out\n\n" + "It sails at nine.\n\n" * 40
    for splitter in (plain, weighted, framework.splitter("SentenceContext", embed_model=HashEncoder())):
        own = framework.split(splitter, [framework.document(text, "velm", header_path="/Velm/Inn/")])
        paths = [framework.metadata(piece)["header_path"] for piece in own]
        assert (paths[0], paths[-1]) == ("/Velm/Inn/", "/Velm/In\\/out/")


def test_sentences_in_context_are_the_same():
    parser = LLAMAINDEX.splitter("SentenceContext", embed_model=HashEncoder(), alpha=0.7)
    nodes = [item.node for item in LLAMAINDEX.split(parser, documents(LLAMAINDEX))]
    splitter = LANGCHAIN.splitter("SentenceContext", embed_model=HashEncoder(), alpha=0.7)
    pieces = LANGCHAIN.split(splitter, documents(LANGCHAIN))
    texts = [piece.page_content for piece in pieces]
    assert len(pieces) > 8
    assert texts == [node.get_content() for node in nodes]
    assert [p.metadata["window"] for p in pieces] == [n.metadata["window"] for n in nodes]
    assert [read_facts(p)["start"] for p in pieces] == [n.start_char_idx for n in nodes]
    once = [row for row, text in enumerate(texts) if texts.count(text) == 1]
    vectors = np.array(splitter.embeddings.embed_documents(texts))[once]
    assert vectors == pytest.approx(np.array([nodes[row].embedding for row in once]), abs=1e-6)
    with pytest.raises(InputError, match="set window_metadata_key="):
        LANGCHAIN.split(splitter, [LANGCHAIN.document("One. Two.", "own", window="mine")])
