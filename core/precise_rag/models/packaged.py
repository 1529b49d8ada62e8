"""Where the packaged models are, and the checksums of their files."""

from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parent

SHIPPED: Mapping[str, Mapping[str, str]] = {
    "evidence": {
        "config.json": "53868e605ef4fa6b4b95ca973f4ae6a691512d1c48b386fd337da69d97237503",
        "model.safetensors": "bc45efe76d96d6b77ce8573a89648e17b88597a5080f1cfeecf88afc1584a219",
    },
    "reranker": {
        "config.json": "a3c1874532b5c3a878abf4d0f4f8489ef4bc6d7f95b91d013dc217202677fbf9",
        "model.safetensors": "d7ace1ce6260dddd156a3a6d1c60866998e5d3b9477e7b46c814cdcb83562695",
    },
    "reranker-cascade": {
        "config.json": "bd9f0878560a4b23cfc84f19057a4c421be99a85ded0a74226df150c28e7d533",
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
