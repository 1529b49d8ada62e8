"""Where the packaged models are, and the checksums of their files."""

from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parent

SHIPPED: Mapping[str, Mapping[str, str]] = {
    "encoder-minilm": {
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "model.safetensors": "237c03ce4e69cc05a0216fba404fec9e305997cd8cb2dd2ab479eb3924db2256",
        "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    },
    "evidence": {
        "config.json": "e2788e482b910b1a5aef8fe4fc9ce4fa879b1fb7c33c41bd99d75e403336462a",
        "model.safetensors": "12313be0ead77816157917b062961454480a61e2e03b54a0bfcf128e0c11c295",
    },
    "reranker": {
        "config.json": "4b724c1fa193798289c6a2c70409b10b7d1fbc5e01becaafc7bb091229907bbb",
        "model.safetensors": "e649720baec603a99e6ddb08e396d55ce42db2f8f345beb93d580d7fb5ee0d9e",
    },
    "reranker-cascade": {
        "config.json": "137ed9256f4f8108cb94c5ade88805d8d95d373c8e75a401cb0be679e7ec5951",
        "model.safetensors": "2f09726aadf25ad7d1ee9d99770d6eaf0531e060b558262e14b4d169bc252b51",
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
