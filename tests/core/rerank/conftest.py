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
