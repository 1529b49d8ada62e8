import pytest

from precise_rag.models.checkpoint import load_checkpoint
from precise_rag.models.packaged import packaged_model


@pytest.mark.parametrize(
    "name", ["reranker", "reranker-cascade", "segmentation-small", "segmentation-sage-minilm"]
)
def test_packaged_models_can_be_loaded(name: str) -> None:
    config, tensors = load_checkpoint(packaged_model(name))
    assert config
    assert tensors
