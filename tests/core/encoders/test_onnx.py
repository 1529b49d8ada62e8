import json
import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from precise_rag.encoders import load_encoder
from precise_rag.encoders.bert_files import bert_settings
from precise_rag.encoders.local import packaged_minilm
from precise_rag.encoders.onnx import NotRunnable, OnnxEncoder
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.errors import ModelError

TEXTS = [
    "A cat sleeps on the mat.",
    "Interest rates rose.",
    "",
    "word " * 300 + "end",
    "Ünïcode, 漢字 and\n\ttabs \ud800 ok",
    "A kitten naps on a rug.",
]
TOLERANCE = 1e-5
"""Largest difference of a number in a vector between ONNX Runtime and torch, both in float32."""


def saved_bert(folder: Path, **changes: object) -> Path:
    """A small BERT with random weights, as sentence-transformers saves it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast  # type: ignore[attr-defined]

    pooling = changes.pop("pooling", "mean")
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *"abcdefghijklmnopqrstuvwxyz",
        "##a",
        "cat",
        "dog",
        ".",
    ]
    (folder / "bert").mkdir(parents=True)
    (folder / "bert" / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 24}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=32, **{**sizes, **changes})
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "bert" / "vocab.txt")).save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"), max_seq_length=20)
    model = SentenceTransformer(
        modules=[transformer, Pooling(16, pooling_mode=pooling), Normalize()], device="cpu"
    )
    model.save_pretrained(str(folder / "model"))
    return folder / "model"


@pytest.fixture(autouse=True)
def float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precise_rag.encoders.sentence_transformer.bfloat16_is_fast", lambda device: False)


@pytest.fixture(scope="module")
def minilm() -> OnnxEncoder:
    return OnnxEncoder("all-MiniLM-L6-v2")


def test_vectors_names_and_counts_are_those_of_torch(minilm: OnnxEncoder) -> None:
    torch = SentenceTransformerEncoder("all-MiniLM-L6-v2", device="cpu")
    np.testing.assert_allclose(minilm.encode(TEXTS), torch.encode(TEXTS), atol=TOLERANCE)
    np.testing.assert_allclose(minilm.encode_queries(TEXTS), torch.encode_queries(TEXTS), atol=TOLERANCE)
    assert minilm.count_tokens(TEXTS).tolist() == torch.count_tokens(TEXTS).tolist()
    assert (minilm.name, minilm.source, minilm.dimension) == (torch.name, torch.source, torch.dimension)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_bert_of_other_sizes_is_run_from_its_folder(tmp_path: Path, pooling: str) -> None:
    folder = saved_bert(tmp_path, pooling=pooling)
    encoder = load_encoder(folder, device="cpu")
    assert isinstance(encoder, OnnxEncoder)
    torch = SentenceTransformerEncoder(folder, device="cpu")
    texts = ["cat dog.", "a", "", "dog b c d " * 9 + "cat"]
    np.testing.assert_allclose(encoder.encode(texts), torch.encode(texts), atol=TOLERANCE)
    assert encoder.name == torch.name


def test_models_that_only_torch_runs_are_left_to_it(tmp_path: Path) -> None:
    folder = saved_bert(tmp_path, hidden_act="relu")
    assert bert_settings(folder) is None
    with pytest.raises(NotRunnable, match="holds no BERT encoder"):
        OnnxEncoder(folder)
    assert isinstance(load_encoder(folder, device="cpu"), SentenceTransformerEncoder)


@pytest.mark.parametrize(
    ("file", "setting", "value"),
    [
        ("config_sentence_transformers.json", "prompts", {"query": "query: "}),
        ("sentence_bert_config.json", "do_lower_case", True),
        ("config.json", "position_embedding_type", "relative_key"),
        ("config.json", "num_hidden_layers", "two"),
        ("1_Pooling/config.json", "pooling_mode_max_tokens", True),
        ("tokenizer_config.json", "do_lower_case", False),
    ],
)
def test_settings_that_change_the_vectors_are_not_overlooked(
    tmp_path: Path, file: str, setting: str, value: object
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(packaged_minilm(), folder)
    assert bert_settings(folder) is not None
    settings = json.loads((folder / file).read_text("utf-8")) if (folder / file).exists() else {}
    (folder / file).write_text(json.dumps({**settings, setting: value}), encoding="utf-8")
    assert bert_settings(folder) is None


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(packaged_minilm(), folder)
    settings = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**settings, "num_hidden_layers": 7}), encoding="utf-8")
    with pytest.raises(ModelError, match=r"'encoder.layer.6.*must have shape"):
        OnnxEncoder(folder).encode(["x"])
    (folder / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="is not a safetensors file"):
        OnnxEncoder(folder).encode(["x"])


def test_a_text_has_the_same_vector_alone_and_among_others_in_any_thread(minilm: OnnxEncoder) -> None:
    expected = minilm.encode(TEXTS)
    alone = np.concatenate([minilm.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, expected, atol=TOLERANCE)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: minilm.encode(TEXTS), range(8)):
            np.testing.assert_allclose(rows, expected, atol=TOLERANCE)


def test_a_pickle_has_no_weights_and_finds_the_model_again(minilm: OnnxEncoder) -> None:
    expected = minilm.encode(TEXTS[:2])
    data = pickle.dumps(minilm)
    assert len(data) < 1000
    np.testing.assert_allclose(pickle.loads(data).encode(TEXTS[:2]), expected, atol=TOLERANCE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_encode(minilm: OnnxEncoder) -> None:
    expected = minilm.encode(TEXTS[:2])
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(write, minilm.encode(TEXTS[:2]).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        rows = np.frombuffer(pipe.read(), dtype=np.float32)
    os.waitpid(child, 0)
    np.testing.assert_allclose(rows.reshape(2, -1), expected, atol=TOLERANCE)


def test_threads_are_those_of_omp_num_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from precise_rag.encoders.onnx_graph import usable_threads

    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert usable_threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert usable_threads() >= 1
