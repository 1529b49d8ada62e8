"""The example that fills a database by workers of Ray."""

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from support import ray_workers
from support.children import at_most
from support.ray_workers import DOCUMENTS, MortalEncoder

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

EXAMPLE = Path(__file__).parents[4] / "examples" / "ray_database.py"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Ray itself sets no limit to a start or to a task, and stands still where others use all cores."""
    ray.cloudpickle.register_pickle_by_value(ray_workers)
    with at_most(2_400):
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
    ray.shutdown()


def test_a_killed_worker_loses_and_doubles_nothing(new_location: Callable[[], str], tmp_path: Path) -> None:
    fill = runpy.run_path(str(EXAMPLE))["fill"]
    location = new_location()
    records = [{"id": d.id, "text": d.text, "metadata": d.metadata} for d in DOCUMENTS]
    dataset = ray.data.from_items(records, override_num_blocks=4)
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
    encoder = MortalEncoder(tmp_path / "killed again")
    assert fill(dataset, location, encoder=encoder) == len(DOCUMENTS)
    assert not encoder.marker.exists()  # nothing was encoded again
    assert len(made) == len(alone)


def test_json_lines_are_read_by_the_workers(location: str, tmp_path: Path) -> None:
    """Metadata are an object there, in which Arrow gives each record the fields of all."""
    records = [{"id": d.id, "text": d.text, "metadata": d.metadata} for d in DOCUMENTS]
    records[0]["metadata"] = {"room": "cellar"}
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    dataset = ray.data.read_json(str(tmp_path / "documents.jsonl"))
    assert runpy.run_path(str(EXAMPLE))["fill"](dataset, location, encoder=HashEncoder()) == len(DOCUMENTS)
    made = DatabaseIndex(location, HashEncoder())
    assert sorted(made.document_ids) == sorted(d.id for d in DOCUMENTS)
    assert made.document("d0").metadata == {"room": "cellar"}
    assert made.document("d7").metadata == {"shelf": 7}
