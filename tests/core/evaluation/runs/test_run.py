"""Runs: kept in a file, and continued where they stopped."""

from pathlib import Path

import pytest

from precise_rag.evaluation import Plan
from precise_rag.evaluation.runs.run import run_pipeline
from precise_rag.testing import HashEncoder
from support.village import dataset


def test_a_run_goes_on_where_it_stopped(plan: Plan, tmp_path: Path) -> None:
    encoder, settings, folder = HashEncoder(), plan.pipelines[1], tmp_path / "runs"
    full = run_pipeline(settings, dataset(), encoder, folder)
    lines = full.path.read_text("utf-8").splitlines(keepends=True)
    full.path.write_text("".join(lines[:4]) + lines[4][:20], encoding="utf-8")
    again = run_pipeline(settings, dataset(), encoder, folder)
    assert again.pieces.keys() == full.pieces.keys()
    for question, pieces in full.pieces.items():
        assert [piece.kept for piece in again.pieces[question]] == [piece.kept for piece in pieces]
        scores = [piece.score for piece in pieces]
        assert [piece.score for piece in again.pieces[question]] == pytest.approx(scores, abs=2e-6)
    assert again.path.read_text("utf-8").splitlines(keepends=True)[:4] == lines[:4]
    assert len(again.path.read_text("utf-8").splitlines()) == len(lines)
    encoded = encoder.calls[:]
    run_pipeline(settings, dataset(), encoder, folder)
    assert encoder.calls == encoded, "a complete run builds no index"
