import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from precise_rag.checkpoints import (
    check_config,
    check_tensors,
    dequantized,
    load_checkpoint,
    quantized,
    read_checked,
    save_checkpoint,
)
from precise_rag.errors import ModelError
from support.faults import failing, no_space


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    tensors = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3).T, "idf": np.array([7], dtype=np.uint8)}
    save_checkpoint(tmp_path / "model", {"kind": "test"}, tensors)
    return tmp_path / "model"


def test_a_saved_model_can_be_loaded_unless_files_are_missing_or_its_config_was_changed(
    saved: Path, tmp_path: Path
) -> None:
    config, tensors = load_checkpoint(saved)
    assert config["kind"] == "test"
    assert config["weights_sha256"] == hashlib.sha256((saved / "model.safetensors").read_bytes()).hexdigest()
    assert tensors["weight"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tensors["idf"].dtype == np.uint8
    with pytest.raises(ModelError, match="contains no model"):
        load_checkpoint(tmp_path / "elsewhere")
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**config, "kind": "other"}))
    with pytest.raises(ModelError, match=r"config\.json was changed.*install or train"):
        load_checkpoint(saved)


def test_settings_have_their_kinds_and_tensors_their_shapes() -> None:
    check_config("model", {"size": 3, "flag": True}, {"size": int, "flag": bool})
    for config in ({}, {"size": True}, {"size": 3.0}, {"size": None}):
        with pytest.raises(ModelError, match=r"model: size in config\.json must be int, got"):
            check_config("model", config, {"size": int})
    tensors = {"weight": np.zeros((2, 3)), "bias": np.zeros(3)}
    check_tensors("model", tensors, {"weight": (2, 3), "bias": (3,)})
    for shapes in ({"weight": (3, 2)}, {"weight": (2,)}, {"other": (1,)}):
        with pytest.raises(ModelError, match=r"must have shape .* got"):
            check_tensors("model", tensors, shapes)


def test_a_save_that_stops_anywhere_leaves_a_whole_model_or_one_that_is_refused(tmp_path: Path) -> None:
    def save(number: int) -> None:
        extra = b"file %d" % number
        config = {"kind": number, "extra_sha256": hashlib.sha256(extra).hexdigest()}
        save_checkpoint(tmp_path, config, {"weight": np.full(3, number, np.float32)}, {"extra.txt": extra})

    def loaded() -> int:
        config, tensors = load_checkpoint(tmp_path)
        kind = int(config["kind"])
        assert tensors["weight"].tolist() == [kind] * 3
        assert read_checked(tmp_path, "extra.txt", config["extra_sha256"]) == b"file %d" % kind
        return kind

    with failing(10_000, no_space) as called:
        save(0)
    seen = set()
    for stop in range(1, len(called) + 1):
        save(0)
        with suppress(OSError), failing(stop, no_space):
            save(1)
        try:
            seen.add(loaded())
        except ModelError:
            seen.add(None)
    save(2)
    assert loaded() == 2
    assert seen == {0, 1, None}


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_no_model_is_written_through_a_link(link: Callable[..., None], saved: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for name in ("config.json", "model.safetensors"):
        link(mine, saved / f"{name}.part")
    save_checkpoint(saved, {"kind": "other"}, {"weight": np.ones(3, np.float32)})
    assert load_checkpoint(saved)[0]["kind"] == "other"
    assert mine.read_text() == "mine"


def test_quantized_tables_can_be_restored_up_to_rounding() -> None:
    random = np.random.default_rng(0)
    table = random.normal(size=(5, 64)).astype(np.float32) * np.array(
        [[1], [100], [0.01], [0], [1]], np.float32
    )
    kept = quantized({"table": table, "bias": np.float32([0.5, -3])}, ["table"])
    assert kept["table"].dtype == np.int8
    assert kept["table_scale"].shape == (5, 1)
    back = dequantized(kept)
    assert sorted(back) == ["bias", "table"]
    assert back["bias"].tolist() == [0.5, -3]
    assert (np.abs(back["table"] - table) <= np.abs(table).max(axis=1, keepdims=True) / 200).all()


def test_blocks_of_a_row_have_scales_of_their_own_and_each_row_needs_one() -> None:
    table = np.float32([[1, 0.25, 100, 25], [0.01, 0, -1, 1]])
    kept = quantized({"table": table}, ["table"], block=2)
    assert kept["table"].tolist() == [[127, 32, 127, 32], [127, 0, -127, 127]]
    assert kept["table_scale"].shape == (2, 2)
    np.testing.assert_allclose(dequantized(kept)["table"], table, rtol=0.01)
    int8 = np.ones((3, 4), dtype=np.int8)
    for tensors in ({"t": int8}, {"t": int8, "t_scale": np.ones((3, 3), dtype=np.float16)}):
        with pytest.raises(ModelError, match="t_scale"):
            dequantized(tensors)
