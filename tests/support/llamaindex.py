"""LlamaIndex doubles shared by several test folders."""

from functools import cached_property

from llamaindex_precise import PreciseEmbedding
from precise_rag.testing import HashEncoder


class HashEmbedding(PreciseEmbedding):
    """The deterministic test encoder as a LlamaIndex embedding."""

    model_name: str = "hash"

    @cached_property
    def encoder(self) -> HashEncoder:
        return HashEncoder()
