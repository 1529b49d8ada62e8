import hashlib
import shutil
from pathlib import Path

import pytest

from precise_rag.checkpoints.saved import load_checkpoint
from precise_rag.errors import ModelError
from precise_rag.models import packaged
from precise_rag.models.packaged import SHIPPED, packaged_model


@pytest.mark.parametrize(
    "name", ["reranker", "reranker-cascade", "segmentation-small", "segmentation-sage-minilm"]
)
def test_packaged_models_can_be_loaded(name: str) -> None:
    config, tensors = load_checkpoint(packaged_model(name))
    assert config
    assert tensors


@pytest.mark.parametrize("name", SHIPPED)
def test_the_known_checksums_are_those_of_the_files(name: str) -> None:
    """If this fails after a training, enter the new checksums in models/packaged.py."""
    folder = packaged_model(name)
    paths = (path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()) for path in paths}
    assert {file: digest.hexdigest() for file, digest in files.items()} == SHIPPED[name]


def test_a_packaged_model_that_is_not_the_shipped_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(packaged_model("reranker"), tmp_path / "segmentation-small")
    load_checkpoint(tmp_path / "segmentation-small")
    monkeypatch.setattr(packaged, "_HERE", tmp_path)
    with pytest.raises(ModelError, match="is not the file that this version of precise-rag ships"):
        load_checkpoint(tmp_path / "segmentation-small")
