"""The example that fills a database by workers of Ray."""

import json
import os
import runpy
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray
from support.children import at_most

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
EXAMPLE = Path(__file__).parents[4] / "examples" / "ray_database.py"
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
    """Ray itself sets no limit to a start or to a task, and stands still where others use all cores."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with at_most(2_400):
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
    ray.shutdown()


def test_a_killed_worker_loses_and_doubles_nothing(new_location: Callable[[], str], tmp_path: Path) -> None:
    """Metadata are an object in each line, in which Arrow gives each record the fields of all."""
    fill = runpy.run_path(str(EXAMPLE))["fill"]
    location = new_location()
    records = [{"id": d.id, "text": d.text, "metadata": d.metadata} for d in DOCUMENTS]
    records[0]["metadata"] = {"room": "cellar"}
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    dataset = ray.data.read_json(str(tmp_path / "documents.jsonl")).repartition(4)
    marker = tmp_path / "killed"
    assert fill(dataset, location, encoder=MortalEncoder(marker)) == len(DOCUMENTS)
    assert marker.exists()
    made = DatabaseIndex(location, HashEncoder())
    alone = DatabaseIndex.build(DOCUMENTS, HashEncoder(), location=new_location())
    assert len(made) == len(alone)
    for query in ("Which cat sleeps?", "cat number 7", "eats"):
        expected = {c.id: c.score for c in alone.search(query, 100, returns="sentence")}
        found = {c.id: c.score for c in made.search(query, 100, returns="sentence")}
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert made.document("d0").metadata == {"room": "cellar"}
    assert made.document("d7").metadata == {"shelf": 7}
    encoder = MortalEncoder(tmp_path / "killed again")
    assert fill(dataset, location, encoder=encoder) == len(DOCUMENTS)
    assert not encoder.marker.exists()  # nothing was encoded again
    assert len(made) == len(alone)
