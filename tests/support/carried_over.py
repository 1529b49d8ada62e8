"""Documents and their indexes, for tests of processes."""

from precise_rag import (
    Document,
)
from precise_rag.index import (
    DenseIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
)

DOCUMENTS = [Document(f"d{i}", f"Keeper {i} lit the lamp. The sea was calm in {1800 + i}.") for i in range(8)]


INDEXES = [HybridIndex, SentenceContextIndex, WordSentenceIndex, DenseIndex]


def found(index):
    return [(c.id, round(c.score, 5)) for c in index.search("who lit the lamp in 1803", 4)]
