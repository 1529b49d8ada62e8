from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from precise_rag.encoders import load_encoder, sentence_transformer
from precise_rag.encoders.bert_files import float32_folder
from precise_rag.encoders.local import batches_by_length, packaged_minilm
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.errors import ModelError
from precise_rag.protocols import Encoder

TEXTS = ["A cat sleeps on the mat.", "Interest rates rose.", "", "word " * 300, "A kitten naps on a rug."]


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    encoder = SentenceTransformerEncoder("all-MiniLM-L6-v2", device="cpu")
    encoder.encode(["load the model"])
    return encoder


def test_rows_have_unit_length_and_the_order_of_the_texts(minilm: Encoder) -> None:
    rows = minilm.encode(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape == (5, 384) == (5, minilm.dimension)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    alone = np.concatenate([minilm.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(rows, alone, atol=0.01)  # bfloat16 on CPUs that have it
    assert rows[0] @ rows[4] > 0.5 > 0.2 > rows[0] @ rows[1]


def test_vectors_match_sentence_transformers(minilm: Encoder) -> None:
    from sentence_transformers import SentenceTransformer

    with float32_folder(packaged_minilm()) as folder:
        reference = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    expected = reference.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    assert np.einsum("nd,nd->n", minilm.encode(TEXTS), expected).min() > 0.9995


def test_tokens_are_counted_without_truncation_and_special_tokens(minilm: Encoder) -> None:
    assert minilm.count_tokens(TEXTS).tolist() == [7, 4, 0, 300, 8]


def test_no_texts_give_no_rows(minilm: Encoder) -> None:
    assert minilm.encode([]).shape == (0, 384)
    assert minilm.encode_queries([]).shape == (0, 384)
    assert minilm.count_tokens([]).shape == (0,)


def test_threads_can_share_an_encoder(minilm: Encoder) -> None:
    expected = minilm.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: minilm.encode(TEXTS), range(8)):
            np.testing.assert_allclose(rows, expected, atol=0.01)


def test_the_packaged_model_has_the_same_name_as_on_the_hub() -> None:
    assert load_encoder("sentence-transformers/all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
    assert load_encoder(packaged_minilm()).name == "all-MiniLM-L6-v2"


def test_a_folder_is_named_after_its_weights(tmp_path: Path) -> None:
    def name(folder: str, weights: bytes) -> str:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.safetensors").write_bytes(weights)
        return SentenceTransformerEncoder(tmp_path / folder).name

    one, other = name("one", b"abc"), name("other", b"abd")
    assert one.startswith("one@")
    assert one.split("@")[1] != other.split("@")[1]


def test_models_that_cannot_be_loaded_raise(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="contains no weights"):
        load_encoder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="is not a safetensors file"):
        load_encoder(tmp_path).encode(["x"])
    with pytest.raises(ModelError, match=r"neither a folder nor in the local model cache"):
        load_encoder("nobody/no-such-model").encode(["x"])


def test_batches_hold_a_limited_number_of_tokens_longest_texts_first() -> None:
    lengths = np.array([3, 10, 2, 5, 4])
    batches = [batch.tolist() for batch in batches_by_length(lengths, limit=12)]
    assert batches == [[1], [3, 4], [0, 2]]


def test_a_text_above_the_limit_is_a_batch_by_itself() -> None:
    assert [batch.tolist() for batch in batches_by_length(np.array([99]), limit=12)] == [[0]]


def test_vectors_leave_the_device_in_groups_and_precision_is_chosen_once_a_call(
    minilm: SentenceTransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of at most 12 tokens, of which 2 may wait: the rows are as without limits, in order."""
    texts = [f"{'word ' * (place % 7)}number {place}" for place in range(30)]
    expected = minilm.encode(texts)
    waited: list[int] = []
    chosen: list[str] = []
    arrived, precision = sentence_transformer.arrived, sentence_transformer.fast_precision

    def note_wait(parts: list[object], device: object) -> object:
        waited.append(len(parts))
        return arrived(parts, device)

    def note_choice(device_type: str) -> object:
        chosen.append(device_type)
        return precision(device_type)

    monkeypatch.setattr(sentence_transformer, "arrived", note_wait)
    monkeypatch.setattr(sentence_transformer, "fast_precision", note_choice)
    monkeypatch.setitem(sentence_transformer._BATCH_TOKENS, "cpu", 12)
    monkeypatch.setattr(sentence_transformer, "_WAITING", 2)
    np.testing.assert_allclose(minilm.encode(texts), expected, atol=0.01)
    assert len(waited) > 5
    assert set(waited) <= {1, 2}
    assert waited[:-1] == [2] * (len(waited) - 1)
    assert chosen == ["cpu"]
