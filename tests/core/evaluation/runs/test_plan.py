"""Plan files: settings, fingerprints, and what is refused."""

from pathlib import Path

import pytest

from precise_rag.errors import InputError
from precise_rag.evaluation import Plan, load_plan
from support.village import PLAN


def test_settings_decide_the_fingerprint_and_the_name_does_not(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "renamed.toml"
    path.write_text(PLAN.replace("sentences]", "renamed]").replace("top_k = 8", "top_k = 9"), "utf-8")
    renamed = load_plan(path)
    assert renamed.pipelines[1].fingerprint == plan.pipelines[1].fingerprint
    assert renamed.pipelines[2].fingerprint != plan.pipelines[2].fingerprint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no pipelines found"),
        ("x = [", "not valid TOML"),
        ('[pipelines.a]\ncolour = "red"', "colour"),
        (
            '[pipelines.a]\npreset = "precise"\nindex = {kind = "dense"}',
            'either "split", "index" or "preset"',
        ),
        ("[pipelines.a]\ntop_k = 3", 'either "split", "index" or "preset"'),
        ('[pipelines.a]\nindex = {kind = "odd"}', "sentence-context"),
        ("[pipelines.a]\nsplit = {chunk_size = 3}", 'needs a "name"'),
        ('[pipelines.a]\nsplit = {name = "sentences"}\nsearch = "odd"', "dense, bm25, hybrid"),
        ('baseline = "b"\n[pipelines.a]\nsplit = {name = "sentences"}', "got 'b'"),
        ('[pipelines.a]\nsplit = {name = "sentences"}\ntop_k = 0', "top_k must be at least 1, got 0"),
    ],
)
def test_bad_plans_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_plan(path)
