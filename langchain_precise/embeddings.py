"""Core encoders as LangChain embeddings."""

from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.load.serializable import Serializable
from pydantic import ConfigDict, PrivateAttr

from precise_rag.encoded import encode_documents, encode_queries
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.protocols import Encoder


class PreciseEmbeddings(Serializable, Embeddings):
    """A core encoder as LangChain embeddings; the default one works offline.

    model: a name or path, an encoder object, or anything else that `load_encoder` takes.
    device: "cpu", "cuda", …; default: a GPU if there is one.
    """

    model: Any = DEFAULT_ENCODER
    device: str | None = None

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", frozen=True)

    _encoder: Encoder = PrivateAttr()

    def __init__(self, model: Any = DEFAULT_ENCODER, device: str | None = None) -> None:
        encoder = load_encoder(model, device, argument="model")
        super().__init__(model=model, device=device)
        self._encoder = encoder

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return True: it can be saved, but an encoder only if it is given by name."""
        return True

    @property
    def encoder(self) -> Encoder:
        """The core encoder."""
        return self._encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector of unit length per text, in order."""
        vectors: list[list[float]] = encode_documents(self.encoder, texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        vector: list[float] = encode_queries(self.encoder, [text])[0].tolist()
        return vector
