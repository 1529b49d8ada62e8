import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from precise_rag import Document, HybridIndex, load_encoder, load_index
from precise_rag._processes import PerProcess
from precise_rag.encoders import int8_layers, onnx_graph
from precise_rag.encoders.int8_layers import (
    Int8Linear,
    Layer,
    Linear,
    Norm,
    reach_of_linear,
    reach_of_norm,
    with_precision,
)
from precise_rag.encoders.onnx_graph import Graph, Session
from precise_rag.errors import InputError, PreciseRagError

TEXTS = [
    "Ilse Brandt has kept the lamp of the harbour since the spring.",
    "Bread prices rose in the valley after the long winter.",
    "Two ferries cross the river every hour.",
]


def product(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    graph, reaches = Graph(), np.full(x.shape[1], 4.0, dtype=np.float32)
    linear = Int8Linear({"l": np.zeros(x.shape[1], dtype=np.float32)})
    given = graph.input("x", "float32", "t", "k")
    graph.output("y", linear(graph, given, Layer("l", weight, bias, lambda: reaches)), "t")
    return graph.session(1).run("y", {"x": x})


def error(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    shapes = (50, 96), (32, 96), (32,)
    x, weight, bias = (random.standard_normal(shape, dtype=np.float32) for shape in shapes)
    return x, weight, bias


def test_a_sample_shows_the_columns_that_reach_far(arrays: tuple[np.ndarray, ...]) -> None:
    x, weight, _ = arrays
    far = np.where(np.arange(96) == 7, 100.0, 1.0).astype(np.float32)
    layer = Layer("l", weight / far, None, lambda: np.full(96, 4.0, dtype=np.float32))

    def build(linear: Linear) -> Graph:
        graph = Graph()
        graph.output("y", linear(graph, graph.input("x", "float32", "t", "k"), layer), "t")
        return graph

    def products(sample: np.ndarray) -> np.ndarray:
        return with_precision("int8", build, lambda: {"x": sample}).session(1).run("y", {"x": x * far})

    assert error(products(x), x @ weight.T) > 0.05
    assert error(products(1.5 * x * far), x @ weight.T) < 0.02


def test_products_are_near_the_exact_ones_with_vnni_and_without_whatever_the_other_rows(
    arrays: tuple[np.ndarray, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, weight, bias = arrays
    signed, exact = product(x, weight, bias), x @ weight.T + bias
    assert error(signed, exact) < 0.02
    is_exact = int8_layers.sums_are_exact()
    monkeypatch.setattr(int8_layers, "sums_are_exact", lambda: False)
    assert error(product(x, weight, bias), exact) < 0.02
    assert not is_exact or product(x, weight, bias) == pytest.approx(signed, abs=1e-4)
    x, weight, bias = arrays
    hostile = np.concatenate([x[:1], 1e4 * x[1:]])
    assert product(hostile, weight, bias)[0] == pytest.approx(product(x, weight, bias)[0], abs=1e-4)


def test_reaches_bound_what_layers_give() -> None:
    random = np.random.default_rng(1)
    scale, shift = random.uniform(0.2, 2.0, (2, 64)).astype(np.float32)
    weight, bias = random.standard_normal((48, 64)), random.standard_normal(48)
    normed = random.standard_normal((500, 64)) * scale + shift
    inner = normed @ weight.T + bias
    after = np.where(inner > -10, inner / (1 + np.exp(-1.702 * np.clip(inner, -10, None))), 0)
    norm = Norm(scale, shift)
    assert (np.abs(normed).max(axis=0) <= reach_of_norm(norm)).all()
    assert (np.abs(inner).max(axis=0) <= reach_of_linear(weight, bias, norm, gelu=False)).all()
    assert (np.abs(after).max(axis=0) <= reach_of_linear(weight, bias, norm, gelu=True) + 0.01).all()


def test_an_encoder_in_int8_has_its_own_name_and_nearly_the_same_vectors(tmp_path: Path) -> None:
    name = "int8:all-MiniLM-L6-v2"
    encoder, exact = load_encoder(name), load_encoder("all-MiniLM-L6-v2", device="cpu")
    assert (encoder.name, encoder.dimension) == (name, exact.dimension)
    cosines = np.einsum("nd,nd->n", encoder.encode(TEXTS), exact.encode(TEXTS))
    assert cosines.min() > 0.985
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS), alone, atol=1e-4)
    with pytest.raises(InputError, match="CPU only"):
        load_encoder(name, device="cuda")
    HybridIndex.build([Document("d", " ".join(TEXTS))], encoder).save(tmp_path / "index")
    assert load_index(tmp_path / "index").encoder.name == name
    with pytest.raises(PreciseRagError, match=name):
        load_index(tmp_path / "index", "all-MiniLM-L6-v2")


@pytest.fixture
def session() -> Session:
    """Twice the input."""
    graph = Graph()
    given = graph.input("x", "float32", "n")
    graph.output("y", graph.op("Mul", given, graph.weight("two", np.full(1, 2, dtype=np.float32))), "n")
    return graph.session(2, for_callers=True)


def doubled(session: Session, number: float) -> float:
    return float(session.run("y", {"x": np.full(1, number, dtype=np.float32)})[0])


def test_a_call_that_begins_while_another_runs_computes_with_one_thread(session: Session) -> None:
    assert doubled(session, 3) == 6
    assert session._alone.take() is None
    running = onnx_graph._running.get(set)
    running.add(-1)
    try:
        assert doubled(session, 4) == 8
    finally:
        running.discard(-1)
    assert session._alone.take() is not None


def test_no_more_calls_run_than_there_are_processors(monkeypatch) -> None:
    inside, most = [], []

    class Slow:
        def run(self, outputs, inputs, options):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()
            return [np.zeros(1, dtype=np.float32)]

    monkeypatch.setattr(onnx_graph, "_slots", PerProcess())
    monkeypatch.setattr(onnx_graph, "usable_threads", lambda: 2)
    session = Session(Slow(), {})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: doubled(session, n), range(16)))
    assert max(most) == 2
    assert not onnx_graph._running.get(set)
