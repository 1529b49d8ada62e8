"""Networks in ONNX files: threads that share them, and processors."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from precise_rag._processes import PerProcess
from precise_rag.encoders import onnx_file
from precise_rag.encoders.local import E5, packaged_encoder
from precise_rag.encoders.onnx_file import OnnxFile, sums_are_exact, usable_threads
from precise_rag.encoders.reading import Reading, reading_of
from precise_rag.encoders.token_ids import TokenIds

TOKENS = TokenIds.joined([[101, 2029, 4937, 102], [101, 3899, 102]])


@pytest.fixture
def reading() -> Reading:
    return reading_of(packaged_encoder(E5), E5)


def test_vectors_are_the_same_on_processors_that_do_not_multiply_int8_exactly(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On those that do, it is only slower."""
    expected = OnnxFile(reading).states(TOKENS)
    monkeypatch.setattr(onnx_file, "sums_are_exact", lambda: not sums_are_exact())
    if sums_are_exact():
        assert OnnxFile(reading).states(TOKENS) == pytest.approx(expected, abs=1e-5)
    else:
        assert OnnxFile(reading).states(TOKENS) != pytest.approx(expected, abs=1e-5)


def test_a_call_that_begins_while_another_runs_computes_with_one_thread(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_file, "usable_threads", lambda: 2)
    network = OnnxFile(reading, for_callers=True)
    expected = network.states(TOKENS)
    assert network._alone.take() is None
    running = onnx_file._running.get(set)
    running.add(-1)
    try:
        assert network.states(TOKENS) == pytest.approx(expected, abs=1e-5)
    finally:
        running.discard(-1)
    assert network._alone.take() is not None


def test_no_more_calls_run_than_processors(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most = [], []

    class Slow:
        get_inputs, get_outputs = (lambda self: []), (lambda self: [SimpleNamespace(name="y")])

        def run(self, outputs: list[str], inputs: dict[str, Any]) -> list[np.ndarray]:
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()
            return [np.zeros((2, 1), dtype=np.float32)]

    monkeypatch.setattr(onnx_file, "_slots", PerProcess())
    monkeypatch.setattr(onnx_file, "usable_threads", lambda: 2)
    monkeypatch.setattr(onnx_file, "_session", lambda *_: Slow())
    network = OnnxFile(reading)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: network.states(TOKENS), range(16)))
    assert max(most) == 2
    assert not onnx_file._running.get(set)


def test_threads_are_those_of_omp_num_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert usable_threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert usable_threads() >= 1
