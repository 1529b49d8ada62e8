"""What LlamaIndex asks of node parsers, alone and in stock ingestion; what they cut is in tests/adapters."""

import pickle
from typing import Any

import llama_index.core
import pytest
from llama_index.core import Settings, StorageContext, VectorStoreIndex
from llama_index.core import load_index_from_storage as load_stock_index
from llama_index.core.callbacks import CallbackManager
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeRelationship,
    TextNode,
)
from llama_index.core.utils import get_tokenizer

from llamaindex_precise import (
    RedundancyPostprocessor,
    SemanticSegmentationNodeParser,
    SentenceContextNodeParser,
)
from precise_rag import Document as CoreDocument
from precise_rag import Segmenter, __version__
from precise_rag.errors import InputError
from precise_rag.index import DenseIndex, SentenceContextIndex
from precise_rag.testing import HashEncoder
from support.alike import assert_alike
from support.frameworks import HashEmbedding

QUESTION = "Who built the oven of river stone?"


def semantic(**settings) -> SemanticSegmentationNodeParser:
    return SemanticSegmentationNodeParser(**{"max_tokens": 30, **settings})


def greedy() -> SemanticSegmentationNodeParser:
    return SemanticSegmentationNodeParser(model="greedy", embed_model=HashEmbedding(), max_tokens=25)


def sentences(**settings) -> SentenceContextNodeParser:
    return SentenceContextNodeParser(embed_model=HashEmbedding(), **settings)


PARSERS = pytest.mark.parametrize("make", [semantic, greedy, sentences])


def places(nodes):
    return [(node.ref_doc_id, node.start_char_idx, node.end_char_idx, node.text) for node in nodes]


@PARSERS
async def test_nodes_keep_links_hidden_keys_and_offsets_also_behind_another_parser(make, documents, capsys):
    before = documents[0].to_json()
    nodes = make().get_nodes_from_documents([Document(text=" "), *documents], show_progress=True)
    assert f"{len(documents)}/{len(documents)} " in capsys.readouterr().err
    texts = {document.doc_id: document.text for document in documents}
    assert all(texts[doc][start:end] == text for doc, start, end, text in places(nodes))
    assert all("s3cret" not in n.get_content(mode) for n in nodes for mode in MetadataMode if mode != "all")
    assert {node.metadata["title"] for node in nodes} == {"Lamps", "Bread"}
    for name in texts:
        own = [node for node in nodes if node.ref_doc_id == name]
        ids = [node.node_id for node in own]
        assert [node.prev_node.node_id if node.prev_node else None for node in own] == [None, *ids[:-1]]
        assert [node.next_node.node_id if node.next_node else None for node in own] == [*ids[1:], None]
    nodes[0].excluded_llm_metadata_keys.append("title")
    assert documents[0].to_json() == before
    assert places(await make().aget_nodes_from_documents(documents)) == places(nodes)
    coarse = SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(documents)
    coarse[0].metadata["page"] = 1
    fine = make()(coarse)
    assert len(fine) > len(coarse)
    assert all(texts[doc][start:end] == text for doc, start, end, text in places(fine))
    assert fine[0].metadata["page"] == 1


def test_options_of_the_base_class(documents):
    parser = SemanticSegmentationNodeParser.from_defaults(
        max_tokens=30,
        include_metadata=False,
        include_prev_next_rel=False,
        callback_manager=CallbackManager(),
        id_func=lambda i, document: f"{document.node_id}-{i}",
    )
    nodes = parser.get_nodes_from_documents(documents[1:])
    assert [node.node_id for node in nodes] == [f"bakery-{i}" for i in range(len(nodes))]
    assert all(node.metadata == {} and set(node.relationships) == {NodeRelationship.SOURCE} for node in nodes)


def test_offsets_count_only_where_the_place_of_the_parent_is_known(documents):
    parent = TextNode(text="Rewritten text. It lies nowhere.")
    parent.relationships[NodeRelationship.SOURCE] = documents[0].as_related_node_info()
    (node, *_) = semantic()([parent])
    assert (node.ref_doc_id, node.start_char_idx, node.end_char_idx) == ("lighthouse", None, None)
    parent = TextNode(id_="note", text="One thing. Another thing.", start_char_idx=7, end_char_idx=32)
    nodes = semantic()([parent])
    assert "".join(parent.text[n.start_char_idx : n.end_char_idx] for n in nodes) == parent.text
    assert {n.ref_doc_id for n in nodes} == {"note"}


@PARSERS
def test_nodes_are_written_for_models_as_their_document(make):
    layout = {
        "text_template": "<{metadata_str}> {content}",
        "metadata_template": "{key}={value}",
        "metadata_separator": ";",
    }
    document = Document(text="The keeper lit it.", metadata={"a": 1, "b": 2}, **layout)
    (node,) = make().get_nodes_from_documents([document])
    assert node.get_content(MetadataMode.LLM).startswith("<a=1;b=2")


@PARSERS
def test_multimodal_nodes_are_cut_by_their_text(make):
    nodes = [
        ImageNode(image="abc", id_="image"),
        IndexNode(text="The keeper lit it.", index_id="i", id_="index"),
        Node(text_resource=MediaResource(text="Eels swim home."), id_="mixed", extra_info={"page": 3}),
        Node(image_resource=MediaResource(path="/x.png"), id_="picture"),
        TextNode(text="A lone \ud83d surrogate.", id_="text"),
    ]
    children = make().get_nodes_from_documents(nodes)
    assert [child.get_content(MetadataMode.NONE) for child in children] == [
        "The keeper lit it.",
        "Eels swim home.",
        "A lone \ud83d surrogate.",
    ]
    assert [child.source_node.node_id for child in children] == ["index", "mixed", "text"]
    assert children[1].metadata["page"] == 3


def test_metadata_that_llamaindex_cannot_hash_is_one_error() -> None:
    """Its hash prints the metadata, and Python prints no number of more than 4,300 digits."""
    document = Document(id_="long", text="One is here. Two is there.", metadata={"n": 10**5_000})
    with pytest.raises(InputError, match="node 'long': LlamaIndex cannot hash its metadata"):
        SemanticSegmentationNodeParser().get_nodes_from_documents([document])


@pytest.mark.parametrize("option", ["max_tokens", "chunk_size"])
def test_the_limit_is_in_the_tokens_of_the_settings(option, documents, monkeypatch):
    def length() -> int:
        nodes = SemanticSegmentationNodeParser(**{option: 12}).get_nodes_from_documents(documents)
        return max(len(Settings.tokenizer(node.text)) for node in nodes)

    assert 8 < length() <= 12
    monkeypatch.setattr(llama_index.core, "global_tokenizer", str.split)
    assert 8 < length() <= 12
    longest = SemanticSegmentationNodeParser(**{option: 12}, tokenizer=list)
    assert max(len(node.text) for node in longest.get_nodes_from_documents(documents)) <= 12


# Saving: settings, and no weights, keys or functions.


@PARSERS
def test_settings_and_pickles_give_the_same_nodes(make, documents):
    parser = make()
    again = type(parser).from_dict(parser.to_dict(), embed_model=parser.embed_model)
    pickled = pickle.dumps(parser)
    assert len(pickled) < 3000
    for other in (again, pickle.loads(pickled)):
        assert other.to_dict() == parser.to_dict()
        nodes, expected = (one.get_nodes_from_documents(documents) for one in (other, parser))
        assert places(nodes) == places(expected)
        assert_alike([node.embedding for node in nodes], [node.embedding for node in expected])


def test_saved_settings_do_not_lie_about_versions_and_weights():
    data = semantic().to_dict()
    again = SemanticSegmentationNodeParser.from_dict(
        data | {"core_version": "0.0.0", "weights_sha256": "0" * 64}
    )
    assert again.to_dict() == data
    assert (again.core_version, again.encoder_name) == (__version__, "")
    assert again.weights_sha256 == Segmenter.from_pretrained("small").weights_sha256


@pytest.mark.parametrize("code", [{"id_func": lambda i, document: str(i)}, {"tokenizer": str.split}])
def test_code_is_passed_again_when_settings_come_back(code):
    (name,) = code
    parser = SemanticSegmentationNodeParser(**code)
    with pytest.raises(InputError, match=f"{name} must be callable"):
        SemanticSegmentationNodeParser.from_dict(parser.to_dict())
    assert SemanticSegmentationNodeParser.from_dict(parser.to_dict(), **code).to_dict() == parser.to_dict()


def test_an_encoder_comes_back_by_name_or_from_the_application_s_settings_and_no_key_is_written():
    class Remote(HashEmbedding):
        api_key: str = "sk-hidden"

    for kind in (SemanticSegmentationNodeParser, SentenceContextNodeParser, RedundancyPostprocessor):
        assert "sk-hidden" not in kind(embed_model=Remote()).to_json()
    data = sentences().to_dict()
    assert data["encoder_name"] == "hash-256"
    assert "embed_model" not in data
    Settings.embed_model = HashEmbedding()
    again = SentenceContextNodeParser.from_dict(data)
    assert again.to_dict() == data
    assert again.get_nodes_from_documents([Document(text="One.")])[0].text == "One."


def test_unknown_and_impossible_settings_are_refused():
    two = {"max_tokens": 30, "chunk_size": 40}
    for settings in ({"max_token": 30}, {"max_tokens": 0}, {"alpha": 2}, two):
        with pytest.raises(InputError, match=next(iter(settings))):
            SemanticSegmentationNodeParser(**settings)
    with pytest.raises(InputError, match="chunk_overlap must be 0, got 20"):
        SemanticSegmentationNodeParser(chunk_overlap=20)
    assert SemanticSegmentationNodeParser(chunk_size=40, chunk_overlap=0).max_tokens == 40
    with pytest.raises(InputError, match="alpha"):
        sentences(alpha=2.0)


# Stock ingestion: caches and vector stores.


def test_the_cache_key_follows_whatever_changes_the_nodes(documents):
    parser = semantic()
    assert get_transformation_hash(documents, parser) == get_transformation_hash(documents, semantic())
    retrained, upgraded = parser.model_copy(), parser.model_copy()
    retrained.__dict__["weights_sha256"], upgraded.__dict__["core_version"] = "0", "9"
    others = [sentences(), sentences(alpha=0.8), semantic(max_tokens=20)]
    others += [semantic(model="greedy", embed_model=HashEncoder(size)) for size in (64, 256)]
    with pytest.raises(InputError, match="an option of a greedy segmenter must be"):
        semantic(model="greedy", embed_model=HashEncoder(), device="cpu")
    keys = [get_transformation_hash(documents, one) for one in (parser, *others, retrained, upgraded)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "parser", [semantic(embed_model=HashEmbedding(), alpha=0.7, whole=0), sentences(alpha=0.7)]
)
def test_vectors_in_context_search_like_the_core_s_index_also_when_persisted(parser, documents, tmp_path):
    embedding, cores = HashEmbedding(), [CoreDocument(d.doc_id, d.text) for d in documents]
    core: Any = SentenceContextIndex.build(cores, HashEncoder(), alpha=0.7)
    if isinstance(parser, SemanticSegmentationNodeParser):
        limits = {"max_tokens": 30, "count_tokens": lambda text: len(get_tokenizer()(text))}
        options = {"chunks": Segmenter.from_pretrained("small", **limits), "chunk_vectors": "context"}
        core = DenseIndex.build(cores, HashEncoder(), alpha=0.7, **options)
    expected = core.search(QUESTION, 3)
    nodes = parser.get_nodes_from_documents([Document(text=" "), *documents])
    assert all(type(value) is float for value in nodes[0].embedding)
    index = VectorStoreIndex(nodes, embed_model=embedding)
    index.storage_context.persist(str(tmp_path))
    storage = StorageContext.from_defaults(persist_dir=str(tmp_path))
    for one in (index, load_stock_index(storage, embed_model=embedding)):
        found = one.as_retriever(similarity_top_k=3).retrieve(QUESTION)
        assert [item.node.text.strip() for item in found] == [candidate.text for candidate in expected]
        assert [item.score for item in found] == pytest.approx([c.score for c in expected], abs=1e-5)


def test_the_passage_of_a_sentence_is_at_hand_but_hidden(documents):
    nodes = sentences().get_nodes_from_documents(documents[:1])
    first = nodes[0]
    assert first.text == first.metadata["original_text"] == "The lighthouse at Cape Orrin was lit in 1871."
    assert first.metadata["window"] == documents[0].text[: nodes[3].end_char_idx]
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert first.get_content(mode) == f"title: Lamps\n\n{first.text}"
    assert documents[0].excluded_llm_metadata_keys == ["secret"]
