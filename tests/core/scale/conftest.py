"""Two local workers of Ray for all tests of this folder."""

from collections.abc import Iterator

import pytest

from support import ray_workers


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray = pytest.importorskip("ray")
    ray.cloudpickle.register_pickle_by_value(ray_workers)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()
