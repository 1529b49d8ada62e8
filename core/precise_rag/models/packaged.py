"""Where the packaged models are, and the checksums of their files."""

from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parent

SHIPPED: Mapping[str, Mapping[str, str]] = {
    "evidence": {
        "config.json": "b5d914fd5a24d444e07d85a25f8d49e19c92c427cbabcb74bc49b575213e62dc",
        "model.safetensors": "7c3b62910c58ed83df591b3643d2d707d61b0dc1d8c118611f328ac72eaf8c4b",
    },
    "reranker": {
        "config.json": "b374b655313bc2651fc9f737970cf370f60ded3c48b5ac453d42e627cdf71987",
        "model.safetensors": "b7ea6ac56025e926976a1fce268268f7332c66a82268a92b215744dbe32e1f1d",
    },
    "reranker-cascade": {
        "config.json": "ba153d3e112004a5929fba1c4ee2084112e4760a50070cef172a7c66ac2510b2",
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
