import json
from pathlib import Path

import pytest

from precise_rag import Segmenter
from precise_rag.cli import main


def test_the_command_trains_and_writes_a_card(
    tmp_path: Path, toy_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "train",
        str(toy_file),
        "--out",
        str(tmp_path),
        "--epochs",
        "1",
        "--held-out",
        "0.2",
        "--json",
    ]
    assert main([*arguments, "--vocabulary", "200"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    card = (tmp_path / "README.md").read_text()
    assert "| toy | CC0 1.0 | 60 | 1,080 |" in card
    assert f"{report['section_auc']:.3f}" in card
    assert Segmenter.from_pretrained(tmp_path).weights_sha256 in card
    assert main(["train", "--out", str(tmp_path)]) == 1
