from pathlib import Path
from shutil import copytree

import pytest

from precise_rag import Segmenter
from precise_rag.checkpoints.saved import packaged_model
from precise_rag.errors import ModelError


def test_damaged_foreign_and_missing_models_are_refused(tmp_path: Path) -> None:
    source = packaged_model("segmentation-small")
    for name in ("model.safetensors", "vocabulary.txt"):
        folder = tmp_path / name
        copytree(source, folder)
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).write_bytes(data)
        with pytest.raises(ModelError, match="again"):
            Segmenter.from_pretrained(folder)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ModelError, match="not of a model of precise-rag"):
        Segmenter.from_pretrained(foreign)
    with pytest.raises(ModelError, match="no segmentation model 'huge'; pass small, sage-minilm, or a"):
        Segmenter.from_pretrained("huge")
