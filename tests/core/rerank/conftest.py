from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from precise_rag.stems import IDF_STEPS, slot

RARITY = {"bridg": 4.0, "wend": 8.0, "open": 2.0}


@pytest.fixture
def idf_table() -> np.ndarray:
    """Rarity of three stems; 1 for all other words."""
    table = np.full(1 << 12, IDF_STEPS, dtype=np.uint8)
    for word, rarity in RARITY.items():
        table[slot(word, len(table))] = int(rarity * IDF_STEPS)
    return table


@pytest.fixture(scope="session")
def untrained() -> Callable[..., dict[str, np.ndarray]]:
    """The tensors that a checkpoint of the cascade holds, before training.

    change: is called with the network before they are taken from it.
    """
    network = pytest.importorskip("precise_rag.rerank.pair_network")
    encoder = network.minilm()

    def tensors(change: Callable[[Any], None] = lambda network: None, **sizes: int) -> dict[str, np.ndarray]:
        pair = network.PairNetwork(network.TransformerConfig(**sizes))
        network.copy_layers(pair, encoder)
        change(pair)
        frozen = ("words", "places", "norm.", "apart")
        return {k: v.numpy() for k, v in pair.state_dict().items() if not k.startswith(frozen)}

    return tensors
