import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from precise_rag import Document, Segmenter
from precise_rag.errors import InputError, ModelError
from precise_rag.models.packaged import packaged_model
from precise_rag.segmentation import GreedySegmenter, SegmenterOptions
from precise_rag.segmentation.boundaries import Reading
from precise_rag.segmentation.segmenter import gap_gains, same_scores
from precise_rag.sentences import paragraph_ids, split_sentences
from precise_rag.sentences.tables import build_tables
from precise_rag.testing import HashEncoder
from precise_rag.types import SentenceTable

TWO_TOPICS = (
    "Yeast turns sugar into gas. The gas makes the dough rise. A warm kitchen speeds it up. "
    "However, the bread must rest before it is baked. "
    "In 1969, two astronauts walked on the Moon. They collected rocks for six hours. "
    "Their capsule landed in the Pacific Ocean four days later."
)


class ScriptedModel:
    """A boundary wherever the sentence holds a bar; one token a word."""

    weights_sha256 = "0" * 64
    encoder = None

    def read(self, sentences, table=None) -> Reading:
        logits = np.array([[3.0, 3.0] if "|" in sentence else [-3.0, -3.0] for sentence in sentences[:-1]])
        return Reading(logits.reshape(-1, 2).astype(np.float32), self.count_tokens(sentences))

    def count_tokens(self, texts):
        return np.array([max(len(text.split()), 1) for text in texts])


def scripted(**options: object) -> Segmenter:
    return Segmenter(ScriptedModel(), name="scripted", options=SegmenterOptions(**options))


def texts(chunks) -> list[str]:
    return [chunk.text for chunk in chunks]


@pytest.fixture(scope="module")
def small() -> Segmenter:
    return Segmenter.from_pretrained("small")


def test_cuts_where_the_model_says() -> None:
    text = "One two. Three four|. Five six.\n\nSeven eight."
    assert texts(scripted().segment(text)) == ["One two. Three four|. ", "Five six.\n\nSeven eight."]
    assert texts(scripted(paragraphs="hard").segment(text))[1:] == ["Five six.\n\n", "Seven eight."]
    assert texts(scripted(max_tokens=2).segment(text)) == [
        "One two. ",
        "Three four|. ",
        "Five six.\n\n",
        "Seven eight.",
    ]
    assert texts(scripted(min_tokens=5).segment(text)) == [text]
    assert texts(scripted(coarse_tokens=2).segment(text))[0] == "One two. "


def test_chunks_carry_the_document() -> None:
    document = Document("d", "One two|. Three.", {"title": "T"})
    first, second = scripted().segment(document)
    assert (first.id, first.n_tokens, first.metadata) == ("d:0-10", 2, {"title": "T"})
    assert second.text == document.text[second.start : second.end] == "Three."


def test_long_sentences_are_cut_to_the_limit() -> None:
    text = "word " * 40 + "end. Next one."
    chunks = scripted(max_tokens=7).segment(text)
    assert "".join(texts(chunks)) == text
    assert max(chunk.n_tokens for chunk in chunks) <= 7


def test_the_callers_measure_holds_for_whole_chunks() -> None:
    # A measure that charges two for every chunk besides its words, so sums of sentences fall short.
    segmenter = Segmenter(
        ScriptedModel(),
        name="scripted",
        options=SegmenterOptions(max_tokens=6),
        count_tokens=lambda texts: [2 + len(text.split()) * (1 + text.count("Two")) for text in texts],
    )
    chunks = segmenter.segment("One one. Two two. Three three. Two two.")
    assert [chunk.n_tokens for chunk in chunks] == [4, 6, 4, 6]


def test_threshold_and_paragraph_evidence_shift_the_score() -> None:
    logits = np.zeros((2, 2), dtype=np.float32)
    gains = gap_gains(logits, np.array([False, True]), 0.55)
    scores = same_scores(gains, 0.55)
    assert scores[0] == pytest.approx(0.5)
    assert scores[1] < scores[0] < 0.55
    assert (gains > 0).tolist() == (scores < 0.55).tolist() == [True, True]


def test_small_model_finds_the_change_of_topic(small: Segmenter) -> None:
    found = small.explain(TWO_TOPICS)
    assert int(np.argmin(found.scores)) == 3
    assert len(small.weights_sha256) == 64


def test_packaged_sage_head_reads_a_table_as_it_would_encode() -> None:
    sage = Segmenter.from_pretrained("sage-minilm", device="cpu")
    documents = [Document("d", TWO_TOPICS), Document("e", "One sentence.")]
    (table, _) = build_tables(documents, sage.model.encoder)
    from_table = sage.explain(documents[0], table)
    np.testing.assert_allclose(from_table.scores, sage.explain(documents[0]).scores, atol=0.02)
    assert from_table.n_tokens.tolist() == table.n_tokens.tolist()
    assert [len(chunks) > 0 for chunks in sage.segment_many(documents)] == [True, True]
    foreign = replace(table, vectors=table.vectors[:, :100])
    with pytest.raises(InputError, match="100 dimensions"):
        sage.explain(documents[0], foreign)


@pytest.mark.parametrize("text", ["", " \n\n\t "])
def test_blank_text_has_no_chunks(small: Segmenter, text: str) -> None:
    assert small.segment(text) == []


any_text = st.lists(
    st.one_of(
        st.sampled_from([*TWO_TOPICS.split(". "), "\n\n", ". ", "- ", "你好。", "\ud800", "x" * 1200]),
        st.text(),
    ),
    max_size=40,
).map(" ".join)


@settings(deadline=None)
@example(text=" 01:01:000000", max_tokens=6, hard=False)
@given(text=any_text, max_tokens=st.integers(1, 60), hard=st.booleans())
def test_chunks_tile_the_text_and_keep_the_limit(
    small: Segmenter, text: str, max_tokens: int, hard: bool
) -> None:
    options = SegmenterOptions(max_tokens=max_tokens, paragraphs="hard" if hard else "soft")
    chunks = Segmenter(small.model, name="small", options=options, splitter=small.splitter).segment(text)
    if text.strip():
        assert "".join(texts(chunks)) == text
        assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
        assert all(0 < chunk.n_tokens <= max_tokens and chunk.text.strip() for chunk in chunks)
    else:
        assert chunks == []


@settings(deadline=None, max_examples=20)
@given(documents=st.lists(any_text, max_size=6))
def test_alone_in_a_batch_and_on_threads_is_the_same(small: Segmenter, documents: list[str]) -> None:
    alone = [small.segment(text) for text in documents]
    assert list(small.segment_many(documents)) == alone
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(small.segment, documents)) == alone


def test_processes_and_pickling_change_nothing(small: Segmenter) -> None:
    documents = [Document(str(k), TWO_TOPICS * (k + 1)) for k in range(5)]
    alone = [small.segment(document) for document in documents]
    assert list(small.segment_many(iter(documents), processes=2)) == alone
    assert list(map(pickle.loads(pickle.dumps(small)).segment, documents)) == alone


def test_a_long_document_is_read_in_blocks_without_a_seam(small: Segmenter, monkeypatch) -> None:
    sentences = [TWO_TOPICS[a:b] for a, b in split_sentences(TWO_TOPICS * 12)]
    whole = small.model.read(sentences)
    monkeypatch.setattr("precise_rag.segmentation.small._BLOCK", 17)
    parts = small.model.read(sentences)
    np.testing.assert_allclose(parts.logits, whole.logits, atol=1e-4)
    assert parts.n_tokens.tolist() == whole.n_tokens.tolist()


def test_damaged_foreign_and_missing_models_are_refused(tmp_path: Path) -> None:
    source = packaged_model("segmentation-small")
    for name in ("model.safetensors", "vocabulary.txt"):
        folder = tmp_path / name
        copytree(source, folder)
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).write_bytes(data)
        with pytest.raises(ModelError, match="again"):
            Segmenter.from_pretrained(folder)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ModelError, match="family"):
        Segmenter.from_pretrained(foreign)
    with pytest.raises(ModelError, match="packaged are small"):
        Segmenter.from_pretrained("huge")


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 1.0},
        {"max_tokens": 0},
        {"min_tokens": 9, "max_tokens": 5},
        {"paragraphs": "x"},
        {"size": 3},
    ],
)
def test_bad_options_are_named(options: dict) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Segmenter.from_pretrained("small", **options)


def table_of(text: str, vectors: list[list[float]]) -> SentenceTable:
    spans = split_sentences(text)
    rows = np.array(vectors, dtype=np.float32)
    counts = np.ones(len(spans), dtype=np.int64)
    return SentenceTable("t", np.array(spans), paragraph_ids(text, spans), counts, rows)


def test_greedy_opens_a_chunk_below_the_threshold() -> None:
    text = "One. Two. Three. Four."
    encoder = HashEncoder()
    table = table_of(text, [[1, 0], [0.8, 0.6], [0, 1], [0, 1]])
    greedy = GreedySegmenter(encoder, threshold=0.7)
    assert texts(greedy.segment(text, table)) == ["One. Two. ", "Three. Four."]
    assert texts(GreedySegmenter(encoder, threshold=0.7, max_chars=8).segment(text, table)) == [
        "One. ",
        "Two. ",
        "Three. ",
        "Four.",
    ]
    assert texts(GreedySegmenter(encoder, threshold=0.5).segment(text, table)) == [text]
    count_words = GreedySegmenter(
        encoder, threshold=0.5, max_chars=3, length_function=lambda texts: [len(t.split()) for t in texts]
    )
    assert texts(count_words.segment(text, table)) == ["One. Two. Three. ", "Four."]


@settings(deadline=None)
@given(text=any_text, max_chars=st.integers(1, 600))
def test_greedy_tiles_the_text_and_keeps_the_limit(text: str, max_chars: int) -> None:
    greedy = GreedySegmenter(HashEncoder(), threshold=0.2, max_chars=max_chars)
    chunks = greedy.segment(text)
    assert "".join(texts(chunks)) == (text if text.strip() else "")
    assert all(len(chunk.text) <= max_chars for chunk in chunks)
    assert chunks == next(iter(greedy.segment_many([text])))


def test_greedy_encodes_several_texts_together() -> None:
    encoder = HashEncoder()
    asked = []
    encode = encoder.encode
    encoder.encode = lambda texts, **options: asked.append(len(texts)) or encode(texts, **options)  # type: ignore[method-assign]
    documents = [
        Document(name, f"The {name} sat. Two dogs. The {name} ran.") for name in ("cat", "owl", "fox")
    ]
    greedy = GreedySegmenter(encoder, threshold=0.2)
    many = list(greedy.segment_many(iter(documents), show_progress=True))
    assert asked == [7]
    assert many == [greedy.segment(document) for document in documents]
