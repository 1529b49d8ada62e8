"""Where the packaged models are, and the checksums of their files."""

from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parent

SHIPPED: Mapping[str, Mapping[str, str]] = {
    "evidence": {
        "config.json": "e2788e482b910b1a5aef8fe4fc9ce4fa879b1fb7c33c41bd99d75e403336462a",
        "model.safetensors": "12313be0ead77816157917b062961454480a61e2e03b54a0bfcf128e0c11c295",
    },
    "reranker": {
        "config.json": "a1daba89b3c463c3450e89f7f42877670f7c748e02feb8b25dba22bce659f49a",
        "model.safetensors": "e649720baec603a99e6ddb08e396d55ce42db2f8f345beb93d580d7fb5ee0d9e",
    },
    "reranker-cascade": {
        "config.json": "4730e1131482ee04d76f2a84f9c061aef3b46fe9ab995f1cd93b3ab195634d02",
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
