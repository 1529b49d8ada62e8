import pickle
from itertools import pairwise

import llama_index.core
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
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

from llamaindex_precise import SemanticSegmentationNodeParser
from llamaindex_precise.papers import (
    GreedySemanticNodeParser,
    RedundancyPostprocessor,
    SentenceContextNodeParser,
)
from precise_rag import Segmenter, __version__
from precise_rag.errors import InputError
from precise_rag.testing import HashEncoder
from support.llamaindex import HashEmbedding


def semantic() -> SemanticSegmentationNodeParser:
    return SemanticSegmentationNodeParser(max_tokens=30)


def greedy() -> GreedySemanticNodeParser:
    return GreedySemanticNodeParser(embed_model=HashEncoder(), max_chars=80)


SHARED_PARSER = SemanticSegmentationNodeParser(max_tokens=8)
PARSERS = pytest.mark.parametrize("make", [semantic, greedy])


@PARSERS
def test_metadata_arrives_hidden_keys_stay_hidden_and_nothing_is_shared(make, documents):
    documents[0].embedding = [1.0, 2.0]
    before = documents[0].to_json()
    nodes = make().get_nodes_from_documents(documents[:1], show_progress=True)
    for node in nodes:
        assert node.metadata == {"title": "Lamps", "secret": "s3cret"}
        assert "s3cret" not in node.get_content(MetadataMode.EMBED)
        assert "s3cret" not in node.get_content(MetadataMode.LLM)
        assert node.embedding is None
    nodes[0].excluded_llm_metadata_keys.append("title")
    assert documents[0].to_json() == before


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


@PARSERS
def test_neighbours_are_linked_within_a_document_only(make, documents):
    nodes = make().get_nodes_from_documents(documents)
    for document in documents:
        own = [node for node in nodes if node.ref_doc_id == document.doc_id]
        ids = [node.node_id for node in own]
        assert [node.prev_node.node_id if node.prev_node else None for node in own] == [None, *ids[:-1]]
        assert [node.next_node.node_id if node.next_node else None for node in own] == [*ids[1:], None]


@PARSERS
def test_chained_after_another_parser_offsets_are_those_of_the_document(make, documents):
    coarse = SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(documents)
    coarse[0].metadata["page"] = 1
    nodes = make()(coarse)
    texts = {document.doc_id: document.text for document in documents}
    assert len(nodes) > len(coarse)
    for node in nodes:
        assert node.text == texts[node.ref_doc_id][node.start_char_idx : node.end_char_idx]
    assert [node.metadata.get("page") for node in nodes[:2]] == [1, 1]
    assert nodes[-1].metadata["title"] == "Bread"
    own = [node for node in nodes if node.ref_doc_id == "lighthouse"]
    assert [node.next_node.node_id for node in own[:-1]] == [node.node_id for node in own[1:]]


def test_offsets_are_left_out_where_the_parent_s_place_is_not_known(documents):
    parent = TextNode(text="Rewritten text. It lies nowhere.")
    parent.relationships[NodeRelationship.SOURCE] = documents[0].as_related_node_info()
    (node, *_) = semantic()([parent])
    assert (node.ref_doc_id, node.start_char_idx, node.end_char_idx) == ("lighthouse", None, None)


def test_a_text_node_without_a_source_is_its_own_document():
    parent = TextNode(id_="note", text="One thing. Another thing.", start_char_idx=7, end_char_idx=32)
    nodes = semantic()([parent])
    assert "".join(parent.text[n.start_char_idx : n.end_char_idx] for n in nodes) == parent.text
    assert {n.ref_doc_id for n in nodes} == {"note"}


def test_blank_documents_are_not_encoded():
    encoder = HashEncoder()
    GreedySemanticNodeParser(embed_model=encoder).get_nodes_from_documents([Document(text="  ")])
    assert encoder.calls == []


TEXTS = st.lists(
    st.one_of(
        st.sampled_from(["One more. ", "Dr. Lee left.", "\n\n", "\r\n", "水車は回る。", "a" * 120, " "]),
        st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
    ),
    max_size=12,
).map("".join)


@settings(max_examples=60, deadline=None)
@given(text=TEXTS, split=st.integers(min_value=0, max_value=200))
def test_any_text_is_tiled_whole_or_in_two_nodes(text, split):
    parser = SHARED_PARSER
    document = Document(text=text, doc_id="d")
    halves = [
        TextNode(
            text=text[start:end],
            start_char_idx=start,
            end_char_idx=end,
            relationships={NodeRelationship.SOURCE: document.as_related_node_info()},
        )
        for start, end in ((0, min(split, len(text))), (min(split, len(text)), len(text)))
    ]
    for parents in ([document], halves):
        nodes = parser(parents)
        assert all(text[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
        assert all(a.end_char_idx <= b.start_char_idx for a, b in pairwise(nodes))
        covered = "".join(node.text for node in nodes)
        assert "".join(covered.split()) == "".join(text.split())
        assert {node.ref_doc_id for node in nodes} <= {"d"}


@PARSERS
async def test_the_async_path_does_the_same_off_the_event_loop(make, documents):
    spans = SimpleSpanHandler()
    dispatcher = get_dispatcher("llamaindex_precise.node_parsers")
    dispatcher.add_span_handler(spans)
    try:
        nodes = await make().aget_nodes_from_documents([Document(text=" "), *documents])
    finally:
        dispatcher.span_handlers.remove(spans)
    assert [n.text for n in nodes] == [n.text for n in make().get_nodes_from_documents(documents)]
    names = [span.id_.split("-")[0].split(".")[1] for span in spans.completed_spans]
    assert names == ["_parse_nodes", "_aparse_nodes"]


def test_saved_settings_do_not_lie_about_versions_and_weights():
    data = semantic().to_dict() | {"core_version": "0.0.0", "weights_sha256": "0" * 64}
    again = SemanticSegmentationNodeParser.from_dict(data)
    assert again.core_version == __version__
    assert again.weights_sha256 == Segmenter.from_pretrained("small").weights_sha256


def test_code_is_passed_again_when_settings_come_back():
    parser = SemanticSegmentationNodeParser(id_func=number_nodes)
    with pytest.raises(InputError, match="id_func 'number_nodes'"):
        SemanticSegmentationNodeParser.from_dict(parser.to_dict())
    again = SemanticSegmentationNodeParser.from_dict(parser.to_dict(), id_func=number_nodes)
    assert again.get_nodes_from_documents([Document(text="One.")])[0].node_id == "0"


def number_nodes(i: int, document: Document) -> str:
    return str(i)


def test_an_encoder_comes_back_by_name_or_from_the_application_s_settings(embedding, monkeypatch):
    from llama_index.core import Settings

    data = GreedySemanticNodeParser(embed_model=embedding).to_dict()
    assert data["encoder_name"] == "hash-256"
    assert "embed_model" not in data
    Settings.embed_model = embedding
    again = GreedySemanticNodeParser.from_dict(data)
    assert again.to_dict() == data
    assert again.get_nodes_from_documents([Document(text="One.")])[0].text == "One."


def test_no_key_is_written_down():
    class Remote(HashEmbedding):
        api_key: str = "sk-hidden"

    for component in (
        GreedySemanticNodeParser(embed_model=Remote()),
        SentenceContextNodeParser(embed_model=Remote()),
        RedundancyPostprocessor(embed_model=Remote()),
    ):
        assert "sk-hidden" not in component.to_json()


def test_a_pickled_parser_is_a_few_settings(documents):
    data = pickle.dumps(semantic())
    assert len(data) < 2000
    again = pickle.loads(data)
    assert again.to_dict() == semantic().to_dict()
    texts = [node.text for node in again.get_nodes_from_documents(documents)]
    assert texts == [node.text for node in semantic().get_nodes_from_documents(documents)]


def test_unknown_and_impossible_settings_are_refused():
    with pytest.raises(InputError, match="max_token"):
        SemanticSegmentationNodeParser(**{"max_token": 30})
    with pytest.raises(ValueError, match="max_tokens"):
        SemanticSegmentationNodeParser(max_tokens=0)


@pytest.mark.parametrize("option", ["max_tokens", "chunk_size"])
def test_the_limit_is_in_the_tokens_of_the_settings(option, documents, monkeypatch):
    def length() -> int:
        nodes = SemanticSegmentationNodeParser(**{option: 12}).get_nodes_from_documents(documents)
        assert "".join(node.text for node in nodes) == "".join(document.text for document in documents)
        return max(len(Settings.tokenizer(node.text)) for node in nodes)

    assert 8 < length() <= 12
    monkeypatch.setattr(llama_index.core, "global_tokenizer", str.split)
    assert 8 < length() <= 12
    longest = SemanticSegmentationNodeParser(**{option: 12}, tokenizer=list)
    assert max(len(node.text) for node in longest.get_nodes_from_documents(documents)) <= 12


@pytest.mark.parametrize(
    "make", [semantic, greedy, lambda: SentenceContextNodeParser(embed_model=HashEncoder())]
)
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
