"""Model folders from anywhere: each loads and works, or is refused with one ModelError."""

import hashlib
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from precise_rag import Candidate, Segmenter
from precise_rag.checkpoints.saved import load_checkpoint, save_checkpoint
from precise_rag.errors import ModelError
from precise_rag.models.packaged import packaged_model
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.packaged import PackagedReranker
from precise_rag.testing import HashEncoder

TEXT = "One is here. Two is there. Three is gone. Four came back."


def segment(folder: Path) -> None:
    Segmenter.from_pretrained(folder, encoder=HashEncoder(384)).segment(TEXT)


def rerank(folder: Path) -> None:
    candidate = Candidate("a", 0, 5, "Paris", score=1.0, score_scale="cosine")
    scores = PackagedReranker(folder).score("Paris?", [candidate])
    assert np.isfinite(scores).all()


USES: dict[str, Callable[[Path], object]] = {
    "segmentation-small": segment,
    "segmentation-sage-minilm": segment,
    "reranker": rerank,
    "reranker-cascade": CascadeReranker,
}
ODD = (
    "",
    "x",
    "../..",
    -1,
    0,
    0.5,
    10**12,
    -(10**12),
    True,
    None,
    [],
    [[]],
    {},
    {"a": []},
    ["x"] * 3,
    [10**12],
)


@pytest.fixture(params=USES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return shutil.copytree(packaged_model(request.param), tmp_path / request.param)


def use(folder: Path) -> None:
    USES[folder.name](folder)


def write_config(folder: Path, config: dict[str, Any]) -> None:
    config.pop("config_sha256", None)
    (folder / "config.json").write_text(json.dumps(config))


def changed(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The config with each key, also of objects inside it, missing or odd."""
    for key, value in config.items():
        yield {name: kept for name, kept in config.items() if name != key}
        yield from ({**config, key: odd} for odd in ODD)
        if isinstance(value, dict):
            yield from ({**config, key: inner} for inner in changed(value))


def test_a_copied_model_works(folder: Path) -> None:
    use(folder)


def test_odd_settings_are_refused_or_harmless(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    for odd in islice(changed(config), 0, None, 11):
        write_config(folder, odd)
        with suppress(ModelError):
            use(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: None,
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
        lambda path: path.touch(),
        lambda path: path.write_bytes(b"\xff\xfe\x00"),
        lambda path: path.write_text("[" * 200_000),
        lambda path: path.write_text('{"family": NaN}'),
        lambda path: path.write_text('{"seed": 1e999, "weights_sha256": 7}'),
        lambda path: path.write_text('{"family": 1' + "0" * 5000 + "}"),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path),
        lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 2**42),
    ],
)
def test_what_is_no_file_of_a_model_is_refused(
    folder: Path, name: str, damage: Callable[[Path], object]
) -> None:
    (folder / name).unlink()
    damage(folder / name)
    with pytest.raises(ModelError):
        use(folder)


def test_a_changed_bit_or_length_of_any_file_is_noticed_or_harmless(folder: Path) -> None:
    choose, counts = random.Random(folder.name), Counter[str]()
    expected, _ = load_checkpoint(folder)

    def attempt(change: Callable[[], object], what: str) -> None:
        change()
        try:
            USES[folder.name](folder)
        except ModelError:
            counts["refused"] += 1
            return
        found, _ = load_checkpoint(folder)  # white space in the settings, or the name of their checksum
        differ = {name for name, value in expected.items() if found.get(name) != value}
        assert differ <= {"config_sha256"}, what
        counts["harmless"] += 1

    for file in sorted(folder.iterdir()):
        data = file.read_bytes()
        anywhere = (choose.randrange(len(data)) for _ in range(20))
        for place in [len(data) - 1, *anywhere]:
            bit = choose.randrange(8)
            changed = bytes([data[place] ^ 1 << bit])
            attempt(partial(write_at, file, place, changed), f"{file}: bit {bit} of byte {place}")
            write_at(file, place, data[place : place + 1])
        for size in (0, 1, len(data) // 2, len(data) - 1, len(data) + 1):
            attempt(partial(os.truncate, file, size), f"{file}: {size} bytes")
            file.write_bytes(data)
    use(folder)
    assert counts["refused"] > 3 * counts["harmless"]


def write_at(file: Path, place: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(data)


def test_a_changed_config_is_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["seed"] = 1
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"was changed.*install or train"):
        use(folder)


@pytest.mark.parametrize("name", USES)
def test_tensors_that_do_not_fit_are_refused(tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(packaged_model(name), tmp_path / name)
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    for key, tensor in tensors.items():
        others = {other: kept for other, kept in tensors.items() if other != key}
        wrong = [tensor.reshape(-1, 1, 1), np.float32([np.nan]), np.array([True])]
        wrong += [tensor[:-1]] if key != "idf" else []
        for changes in ({}, *({key: one} for one in wrong)):
            save_checkpoint(folder, config, {**others, **changes})
            with pytest.raises(ModelError):
                use(folder)


def test_every_cut_of_a_weights_file_is_refused(tmp_path: Path) -> None:
    data = save({"a": np.ones((3, 2), np.float32), "b": np.ones(2, np.float16)})
    for size in range(len(data)):
        save_checkpoint(tmp_path, {}, {})
        (tmp_path / "model.safetensors").write_bytes(data[:size])
        config = json.loads((tmp_path / "config.json").read_text())
        config["weights_sha256"] = hashlib.sha256(data[:size]).hexdigest()
        write_config(tmp_path, config)
        with pytest.raises(ModelError, match="not a safetensors file"):
            load_checkpoint(tmp_path)


def test_a_model_does_not_choose_a_paid_encoder(tmp_path: Path) -> None:
    folder = shutil.copytree(packaged_model("segmentation-sage-minilm"), tmp_path / "sage")
    config = json.loads((folder / "config.json").read_text())
    write_config(folder, {**config, "encoder": "openai:text-embedding-3-small"})
    with pytest.raises(ModelError, match="pass encoder="):
        Segmenter.from_pretrained(folder)
    Segmenter.from_pretrained(folder, encoder=HashEncoder(384)).segment(TEXT)
