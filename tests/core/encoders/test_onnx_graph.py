import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from precise_rag._processes import PerProcess
from precise_rag.encoders import onnx_graph
from precise_rag.encoders.onnx_graph import Graph, Session


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
    inside, most, lock = [], [], threading.Lock()

    class Slow:
        def run(self, outputs, inputs, options):
            with lock:
                inside.append(1)
                most.append(len(inside))
            time.sleep(0.01)
            with lock:
                inside.pop()
            return [np.zeros(1, dtype=np.float32)]

    monkeypatch.setattr(onnx_graph, "_slots", PerProcess())
    monkeypatch.setattr(onnx_graph, "usable_threads", lambda: 2)
    session = Session(Slow(), {})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: doubled(session, n), range(16)))
    assert max(most) == 2
    assert not onnx_graph._running.get(set)
