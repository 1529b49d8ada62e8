"""Ray Data with two local workers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.facts import piece_id, read_facts
from precise_rag.index import SentenceContextIndex, weighted_sentences
from precise_rag.scale import embed_to_parquet
from precise_rag.testing import HashEncoder
from support.ray_workers import DOCUMENTS, MortalEncoder

ray = pytest.importorskip("ray")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def rows_in(folder: Path) -> dict[str, dict[str, Any]]:
    parts = [parquet.read_table(part).to_pylist() for part in folder.glob("part-*.parquet")]
    assert not list(folder.glob(".*.tmp"))
    found = [row for part in parts for row in part]
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row for row in found}


def test_a_killed_worker_loses_nothing_and_a_second_run_skips_all(tmp_path: Path) -> None:
    marker, out = tmp_path / "died", tmp_path / "out"
    encoder = MortalEncoder(marker)
    done = embed_to_parquet(DOCUMENTS, out, encoder=encoder, batch_documents=3, alpha=0.7)
    assert marker.exists()
    assert done == (12, 36, 0)
    found = rows_in(out)
    for sentence in weighted_sentences(DOCUMENTS, HashEncoder(), alpha=0.7):
        row = found[sentence.id]
        assert row["text"] == sentence.text
        facts = read_facts(sentence.metadata)
        assert [row[name] for name in ("doc_id", "start", "end")] == [
            facts[n] for n in ("doc_id", "start", "end")
        ]
        assert [row["passage_start"], row["passage_end"]] == facts["passage"]
        assert row["metadata"] == f'{{"shelf": {sentence.metadata["shelf"]}}}'
        np.testing.assert_allclose(row["vector"], sentence.vector, atol=1e-6)
    assert embed_to_parquet(DOCUMENTS, out, encoder=encoder, alpha=0.7) == (0, 0, 12)
    more = [*DOCUMENTS, replace(DOCUMENTS[0], id="new")]
    assert embed_to_parquet(more, out, encoder=encoder, alpha=0.7) == (1, 3, 12)
    assert len(rows_in(out)) == 39
    with pytest.raises(InputError, match="pass another folder"):
        embed_to_parquet(DOCUMENTS, out, encoder=encoder, alpha=0.2)


def test_a_ray_dataset_is_read_by_the_workers(tmp_path: Path) -> None:
    rows = [{"id": d.id, "text": d.text, "metadata": json.dumps(d.metadata)} for d in DOCUMENTS]
    dataset, encoder = ray.data.from_items(rows), HashEncoder()
    assert embed_to_parquet(dataset, tmp_path / "out", encoder=encoder, batch_documents=5) == (12, 36, 0)
    found = rows_in(tmp_path / "out")
    for sentence in weighted_sentences(DOCUMENTS, HashEncoder()):
        assert found[sentence.id]["text"] == sentence.text
        np.testing.assert_allclose(found[sentence.id]["vector"], sentence.vector, atol=1e-6)
    changed = ray.data.from_items([*rows[:3], {**rows[3], "text": "Something else."}])
    assert embed_to_parquet(changed, tmp_path / "out", encoder=encoder) == (1, 1, 3)


def test_a_vector_store_can_load_the_files(tmp_path: Path) -> None:
    """The example of docs/guides/retrieval.md: the store ranks like the index."""
    dataset = pytest.importorskip("pyarrow.dataset")
    lancedb = pytest.importorskip("lancedb")
    embed_to_parquet(DOCUMENTS, tmp_path / "out", encoder=HashEncoder(), batch_documents=5)
    files = [str(part) for part in (tmp_path / "out").glob("part-*.parquet")]
    rows = dataset.dataset(files).to_table()
    table = lancedb.connect(tmp_path / "store").create_table("sentences", rows)
    query = "When does cat number 7 wake?"
    vector = HashEncoder().encode_queries([query])[0]
    found = table.search(vector.tolist()).distance_type("cosine").limit(3).to_list()
    expected = SentenceContextIndex.build(DOCUMENTS, HashEncoder()).search(query, 3)
    assert [1 - row["_distance"] for row in found] == pytest.approx([c.score for c in expected], abs=1e-4)
    assert found[0]["id"] == piece_id(expected[0].doc_id, expected[0].start, expected[0].end)


def test_settings_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="workers must be at least 1, got 0"):
        embed_to_parquet(DOCUMENTS, tmp_path, workers=0)
