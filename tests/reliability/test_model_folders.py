"""Model folders from anywhere: each loads and works, or is refused with one ModelError."""

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from precise_rag import Candidate, Segmenter
from precise_rag.checkpoints.saved import packaged_model, save_checkpoint
from precise_rag.encoders import load_encoder
from precise_rag.errors import ModelError
from precise_rag.rerank import load_reranker
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.packaged import PackagedReranker
from precise_rag.testing import HashEncoder
from support.faults import IN_PLACE_OF_A_FILE

TEXT = "One is here. Two is there. Three is gone. Four came back."


def segment(folder: Path) -> list[str]:
    segmenter = Segmenter.from_pretrained(folder, encoder=HashEncoder(384))
    return [chunk.text for chunk in segmenter.segment(TEXT)]


def rerank(folder: Path) -> list[float]:
    candidate = Candidate("a", 0, 5, "Paris", score=1.0, score_scale="cosine")
    return PackagedReranker(folder).score("Paris?", [candidate]).tolist()


USES: dict[str, Callable[[Path], object]] = {
    "segmentation-small": segment,
    "segmentation-sage-minilm": segment,
    "reranker": rerank,
    "reranker-cascade": lambda folder: CascadeReranker(folder).weights_sha256,
}


@pytest.fixture(params=USES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return shutil.copytree(packaged_model(request.param), tmp_path / request.param)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("fault", IN_PLACE_OF_A_FILE)
def test_what_is_no_file_of_a_model_is_refused(folder: Path, name: str, fault: str) -> None:
    (folder / name).unlink()
    IN_PLACE_OF_A_FILE[fault](folder / name)
    with pytest.raises(ModelError):
        USES[folder.name](folder)


def test_a_changed_bit_or_length_of_any_file_is_noticed_or_harmless(folder: Path) -> None:
    """White space between the settings may change."""
    choose, use, n_refused = random.Random(folder.name), USES[folder.name], 0
    expected = use(folder)
    for file in sorted(folder.iterdir()):
        data = file.read_bytes()
        places = [len(data) - 1, *(choose.randrange(len(data)) for _ in range(10))]
        changed = [data[:at] + bytes([data[at] ^ 1 << choose.randrange(8)]) + data[at + 1 :] for at in places]
        changed += [data[: len(data) // 2], data + b"\0"]
        for other in changed:
            file.write_bytes(other)
            try:
                assert use(folder) == expected
            except ModelError:
                n_refused += 1
        file.write_bytes(data)
    assert n_refused > 20


def test_settings_and_tensors_that_do_not_fit_each_other_are_refused(folder: Path) -> None:
    """Although their checksums are right."""
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        others = {other: kept for other, kept in tensors.items() if other != name}
        for changes in ({}, {name: tensor.reshape(-1, 1, 1)}, {name: np.float32([np.nan])}):
            save_checkpoint(folder, config, {**others, **changes})
            with pytest.raises(ModelError):
                USES[folder.name](folder)
    for name in config:
        save_checkpoint(folder, {**config, name: None}, tensors)
        with suppress(ModelError):  # of settings that are only told, such as the seed
            USES[folder.name](folder)


def test_a_model_does_not_choose_a_paid_encoder(tmp_path: Path) -> None:
    source = packaged_model("segmentation-sage-minilm")
    config = json.loads((source / "config.json").read_text())
    tensors = load_file(source / "model.safetensors")
    save_checkpoint(tmp_path, {**config, "encoder": "openai:text-embedding-3-small"}, tensors)
    with pytest.raises(ModelError, match="pass encoder="):
        Segmenter.from_pretrained(tmp_path)
    Segmenter.from_pretrained(tmp_path, encoder=HashEncoder(384)).segment(TEXT)


_TRANSFORMER = [{"type": "sentence_transformers.models.Transformer"}]


@pytest.mark.parametrize("load", [load_encoder, load_reranker])
@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("modules.json", [*_TRANSFORMER, {"idx": 1, "name": "1", "path": "", "type": "evil.Evil"}]),
        ("modules.json", [*_TRANSFORMER, {"type": "os.system"}]),
        ("modules.json", [{"type": "sentence_transformers/../evil.Evil"}]),
        ("modules.json", {"type": "evil.Evil"}),
        ("1_Part/router_config.json", {"types": {"0": "evil.Evil"}}),
        ("1_Part/config.json", {"activation_function": "torch.hub.load"}),
        ("config.json", {"sentence_transformers": {"activation_fn": "evil.Evil"}}),
        ("config.json", {"sbert_ce_default_activation_function": "evil.Evil"}),
        ("config_sentence_transformers.json", {"activation_fn": "evil.Evil"}),
    ],
)
def test_a_folder_that_names_code_of_its_own_is_refused(
    load: Callable[[Path], object], file: str, settings: object, tmp_path: Path
) -> None:
    (tmp_path / "1_Part").mkdir()
    (tmp_path / "modules.json").write_text(json.dumps(_TRANSFORMER))
    (tmp_path / file).write_text(json.dumps(settings))
    (tmp_path / "model.safetensors").write_bytes(b"x")
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    with pytest.raises(ModelError, match=r"modules\.json|names '(evil\.Evil|os\.system|torch\.hub\.load)'"):
        load(tmp_path)
    assert not (tmp_path / "ran").exists()
