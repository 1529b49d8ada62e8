import hashlib
import json
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from precise_rag.checkpoints.saved import load_checkpoint, read_checked, save_checkpoint
from precise_rag.errors import ModelError
from support.faults import failing, no_space


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    tensors = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3).T, "idf": np.array([7], dtype=np.uint8)}
    save_checkpoint(tmp_path / "model", {"kind": "test"}, tensors)
    return tmp_path / "model"


def test_a_saved_model_can_be_loaded(saved: Path) -> None:
    config, tensors = load_checkpoint(saved)
    assert config["kind"] == "test"
    assert config["weights_sha256"] == hashlib.sha256((saved / "model.safetensors").read_bytes()).hexdigest()
    assert tensors["weight"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tensors["idf"].dtype == np.uint8


def test_changed_weights_are_refused(saved: Path) -> None:
    with (saved / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    with pytest.raises(ModelError, match="sha256"):
        load_checkpoint(saved)


def test_missing_and_broken_files_are_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="contains no model"):
        load_checkpoint(tmp_path / "elsewhere")
    (saved / "config.json").write_text("{")
    with pytest.raises(ModelError, match="not valid JSON"):
        load_checkpoint(saved)


def test_weights_of_another_format_are_refused(saved: Path) -> None:
    (saved / "model.safetensors").write_bytes(b"not tensors")
    digest = hashlib.sha256(b"not tensors").hexdigest()
    (saved / "config.json").write_text(json.dumps({"weights_sha256": digest}))
    with pytest.raises(ModelError, match="not a safetensors file"):
        load_checkpoint(saved)


def test_a_changed_config_is_refused_and_one_without_a_checksum_is_not(saved: Path) -> None:
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**config, "kind": "other"}))
    with pytest.raises(ModelError, match=r"config\.json was changed"):
        load_checkpoint(saved)
    del config["config_sha256"]
    (saved / "config.json").write_text(json.dumps({**config, "kind": "other"}))
    assert load_checkpoint(saved)[0]["kind"] == "other"


@pytest.mark.slow
def test_a_save_that_stops_anywhere_leaves_the_earlier_model_or_the_new_one(tmp_path: Path) -> None:
    """Also when the next save stops, too, or is the first to complete."""

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
    saved, attempt, seen = 0, 0, set()
    for stops in product(range(1, len(called) + 1), repeat=2):
        for stop in stops:
            attempt += 1
            with suppress(OSError), failing(stop, no_space):
                save(attempt)
            found = loaded()
            assert found in (saved, attempt)
            seen.add(found == attempt)
            saved = found
    assert seen == {True, False}
    save(-1)
    assert loaded() == -1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "extra.txt",
        "model.safetensors",
    ]
