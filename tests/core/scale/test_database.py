"""Ray Data with two local workers into a database."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from precise_rag.index import DatabaseIndex
from precise_rag.scale import embed_to_database
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

ray = pytest.importorskip("ray")
pytest.importorskip("lancedb")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

DOCUMENTS = [
    Document(f"d{i}", f"Cat number {i} sleeps. It wakes at {i} o'clock.\n\nThen it eats.", {"shelf": i})
    for i in range(12)
]


class MortalEncoder(HashEncoder):
    """Kills its own process, once, when it encodes document 5."""

    def __init__(self, marker: Path) -> None:
        super().__init__()
        self.marker = marker

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        if any("number 5" in text for text in texts) and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def test_a_killed_worker_loses_and_doubles_nothing(tmp_path: Path) -> None:
    location = str(tmp_path / "rows.lance")
    marker = tmp_path / "killed"
    count = embed_to_database(
        DOCUMENTS, location, encoder=MortalEncoder(marker), workers=2, batch_documents=3
    )
    assert marker.exists()
    assert count == len(DOCUMENTS)
    made = DatabaseIndex(location, HashEncoder())
    alone = DatabaseIndex.build(DOCUMENTS, HashEncoder(), location=tmp_path / "alone.lance")
    assert len(made) == len(alone)
    for query in ("Which cat sleeps?", "cat number 7", "eats"):
        expected = {c.id: c.score for c in alone.search(query, 100, returns="sentence")}
        found = {c.id: c.score for c in made.search(query, 100, returns="sentence")}
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
