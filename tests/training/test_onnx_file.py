"""The ONNX files of packaged networks."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from precise_rag.checkpoints import packaged_model
from precise_rag.encoders.onnx import OnnxEncoder

pytest.importorskip("onnx")
from training.onnx_file import network_of, reach_of_linear, reach_of_norm


def test_reaches_bound_what_layers_give() -> None:
    random = np.random.default_rng(1)
    scale, shift = random.uniform(0.2, 2.0, (2, 64)).astype(np.float32)
    weight, bias = random.standard_normal((48, 64)), random.standard_normal(48)
    normed = random.standard_normal((500, 64)) * scale + shift
    inner = normed @ weight.T + bias
    after = np.where(inner > -10, inner / (1 + np.exp(-1.702 * np.clip(inner, -10, None))), 0)
    norm = scale, shift
    assert (np.abs(normed).max(axis=0) <= reach_of_norm(norm)).all()
    assert (np.abs(inner).max(axis=0) <= reach_of_linear(weight, bias, norm, gelu=False)).all()
    assert (np.abs(after).max(axis=0) <= reach_of_linear(weight, bias, norm, gelu=True) + 0.01).all()


@pytest.mark.parametrize(("name", "int8"), [("encoder-minilm", False), ("encoder-e5", True)])
def test_a_file_that_is_written_again_gives_the_same_vectors(name: str, int8: bool, tmp_path: Path) -> None:
    source, copy = packaged_model(name), tmp_path / name
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.onnx"))
    (copy / "model.onnx").write_bytes(network_of(copy, int8=int8))
    texts = ["Ilse Brandt has kept the lamp of the harbour since the spring.", "", "Bread rose."]
    cosines = np.einsum("nd,nd->n", OnnxEncoder(copy).encode(texts), OnnxEncoder(source).encode(texts))
    assert cosines.min() > 0.999
