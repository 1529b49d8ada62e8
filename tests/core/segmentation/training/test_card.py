import json
from pathlib import Path

import numpy as np
import pytest

from precise_rag import Segmenter
from precise_rag.cli import main
from precise_rag.segmentation.pretrained import load_model


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


def test_training_goes_on_from_the_packaged_model_and_says_which_to_use(
    tmp_path: Path, toy_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The best epoch is chosen on held-out documents, and the packaged model is one of them."""
    out = tmp_path / "better"
    assert main(["train", str(toy_file), "--out", str(out), "--epochs", "3", "--batch-size", "128"]) == 0
    told = capsys.readouterr().out
    history = json.loads((out / "checkpoint" / "history.json").read_text())["history"]
    best = min(history, key=lambda figures: figures["loss"])
    assert history[0]["epoch"] == 0 < best["epoch"]
    assert f"use {out}: its loss on the held-out documents is {best['loss']:.4f}, that of small" in told

    worse = tmp_path / "worse"
    arguments = ["train", str(toy_file), "--out", str(worse), "--batch-size", "128", "--learning-rate", "30"]
    assert main(arguments) == 0
    assert "use small: no epoch was better on the held-out documents" in capsys.readouterr().out
    sentences = ["The lamp is lit at dusk.", "Ilse keeps it.", "The ferry sails at nine."]
    kept, packaged = (load_model(one)[0].predict(sentences).logits for one in (worse, "small"))
    np.testing.assert_allclose(kept, packaged, atol=1e-2)

    assert main(
        ["train", str(toy_file), "--out", str(tmp_path / "x"), "--family", "sage", "--start", "small"]
    )
    assert "leave out --family sage" in capsys.readouterr().err
    assert main(
        ["train", str(toy_file), "--out", str(tmp_path / "x"), "--start", "small", "--vocabulary", "9"]
    )
    assert "or pass --start none" in capsys.readouterr().err
