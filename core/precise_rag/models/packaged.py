"""Where the packaged models are, and the checksums of their files."""

from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parent

SHIPPED: Mapping[str, Mapping[str, str]] = {
    "evidence": {
        "config.json": "9a0e3faf46eeb0a2d5c439f1a623806cd3a2180247546cf214f2d0a733182036",
        "model.safetensors": "4c9416d73b7aa63e56d508da38f99e45a0dd1a9a9c7cb116c27908201bad4743",
    },
    "reranker": {
        "config.json": "4b0eae3399bfe634a911c206f28497c12b52b538fc36d2c9450a273ef590efd7",
        "model.safetensors": "0dad9a9a5ad2dbbac62d207462355c7f9130a14e7236e21d579a80f64e44521b",
    },
    "reranker-cascade": {
        "config.json": "82a5f86fca3fbe782691e1d2eb474e4896e796e38a1a2c6429cc897e423e8ce6",
        "model.safetensors": "cc737c7809176517eb1375f3714c3fc7f426763219a931f42497108bbc32b70d",
    },
    "segmentation-sage-minilm": {
        "config.json": "dd376796dec71f94f48853b756b6a31b19803c3ec40fc29656f7915183487d02",
        "model.safetensors": "4b611a0b04ee4fcfeb80d53244250ec32ccb8164699d3387520ec8b74023fc92",
    },
    "segmentation-small": {
        "config.json": "f68de9927ef931b2dc038baa03b95e6ccc2e5fafd127f4ea57fcb6fdfcd43416",
        "model.safetensors": "51fa059b79c3f0cddc3d61c4a0a003cdc4d0d7205565c0e928489b76f9ec0aab",
        "vocabulary.txt": "bfc2cbe83b02c518bc05c5a37186065f8602a7044ca578ea39f07c3d54385166",
    },
}
"""The sha256 of each file of a packaged model. Whoever trains one again enters the new ones here."""


def packaged_model(name: str) -> Path:
    """Return the folder of a model that ships with precise-rag.

    name: the folder's name in `precise_rag/models`, for instance "reranker".
    """
    return _HERE / name


def packaged_checksums(folder: Path) -> Mapping[str, str]:
    """Return the sha256 of each file that ships in `folder`; none if it is not a packaged model's."""
    folder = folder.resolve()
    return SHIPPED.get(folder.name, {}) if folder.parent == _HERE else {}
