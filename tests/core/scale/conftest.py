"""Two local workers of Ray for all tests of this folder."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support import ray_workers

_LONGEST = 1_200
"""Seconds without an end after which Ray is taken to stand still."""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray = pytest.importorskip("ray")
    ray.cloudpickle.register_pickle_by_value(ray_workers)
    with _bounded():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    with _bounded():
        yield


@contextmanager
def _bounded() -> Iterator[None]:
    """Fail instead of waiting for ever: Ray itself sets no limit to a start or to a task."""

    def give_up(*_: object) -> None:
        raise TimeoutError(
            f"Ray has not ended in {_LONGEST // 60} minutes; its processes get too little time when others "
            "use all cores, above all under `nice`: run this test on a machine that has a core free"
        )

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
