"""Where the packaged models are, and the checksums of their files."""

from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parent

SHIPPED: Mapping[str, Mapping[str, str]] = {
    "evidence": {
        "config.json": "91638450015bb2d139a054db892068ecc589bca114c4cf7edbdfd97e4d6f187d",
        "model.safetensors": "058f7d2f9bca637824fd383b66c5496170f819deb37e1cb6d73747da3bde219f",
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
        "config.json": "2bb4a438b1e49606f8b98df4cb3eb88d5458a2f9739d10c35ebee11a5fefdbcd",
        "model.safetensors": "523d0876685876e5aa0a4f04863dfbba6bc344ab949affea10d09a5e91128ec3",
    },
    "segmentation-small": {
        "config.json": "4c45581d95a877afa59c066b1e03db569adb4273a0ec23f10b6b1ee2826fa65b",
        "model.safetensors": "56b6c2fffe7cc33a47e24c027b41bace62abb0e34b0656853fdc73c28047d191",
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
