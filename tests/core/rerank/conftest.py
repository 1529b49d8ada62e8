import numpy as np
import pytest

from precise_rag.rerank.pairs import trained_shapes
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
def untrained() -> dict[str, np.ndarray]:
    """Tensors such as a checkpoint of the cascade holds, drawn at random."""
    random = np.random.default_rng(0)
    tensors = {
        name: random.normal(0, 0.06, shape).astype(np.float32) for name, shape in trained_shapes().items()
    }
    norms = [name for name in tensors if name.endswith("LayerNorm.weight")]
    return tensors | {name: 1 + tensors[name] for name in norms}
