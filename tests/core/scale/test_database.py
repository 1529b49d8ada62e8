"""Ray Data with two local workers into a database."""

import json
from pathlib import Path

import pytest

from precise_rag.index import DatabaseIndex
from precise_rag.scale import embed_to_database
from precise_rag.testing import HashEncoder
from support.databases import new_location
from support.ray_workers import DOCUMENTS, MortalEncoder

ray = pytest.importorskip("ray")
pytest.importorskip("lancedb")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("engine", ["lance", "postgres"])
def test_a_killed_worker_loses_and_doubles_nothing(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = new_location(engine, request, tmp_path)()
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
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-3)
    encoder = MortalEncoder(tmp_path / "killed again")
    assert embed_to_database(DOCUMENTS, location, encoder=encoder, workers=2) == len(DOCUMENTS)
    assert not encoder.marker.exists()  # nothing was encoded again
    assert len(made) == len(alone)


def test_json_lines_are_read_by_the_workers(tmp_path: Path) -> None:
    """Metadata are an object there, in which Arrow gives each record the fields of all."""
    records = [{"id": d.id, "text": d.text, "metadata": d.metadata} for d in DOCUMENTS]
    records[0]["metadata"] = {"room": "cellar"}
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    dataset, location = ray.data.read_json(str(tmp_path / "documents.jsonl")), str(tmp_path / "rows.lance")
    assert embed_to_database(dataset, location, encoder=HashEncoder()) == len(DOCUMENTS)
    made = DatabaseIndex(location, HashEncoder())
    assert sorted(made.document_ids) == sorted(d.id for d in DOCUMENTS)
    assert made.document("d0").metadata == {"room": "cellar"}
    assert made.document("d7").metadata == {"shelf": 7}
