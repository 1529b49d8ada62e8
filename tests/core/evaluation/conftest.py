"""Fixtures of the evaluation tests: a plan and its outcome over a small collection."""

from pathlib import Path

import pytest

from precise_rag.evaluation import Outcome, Plan, evaluate, load_plan
from precise_rag.testing import HashEncoder
from support.village import PLAN, dataset


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    return load_plan(path)


@pytest.fixture
def outcome(plan: Plan, tmp_path: Path) -> Outcome:
    pytest.importorskip("ir_measures")
    (found,) = evaluate(plan, [dataset()], HashEncoder(), tmp_path / "runs", budgets=(20, 40))
    return found
