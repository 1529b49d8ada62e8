"""The core's encoders, the offline one among them, as LangChain embeddings."""

from typing import Any

from langchain_core.embeddings import Embeddings

from precise_rag.encoders import DEFAULT_ENCODER, load_encoder


class PreciseEmbeddings(Embeddings):
    """Vectors of unit length from whatever `load_encoder` takes: a model's name or path, or an encoder."""

    def __init__(self, encoder: Any = DEFAULT_ENCODER, device: str | None = None) -> None:
        self.encoder = load_encoder(encoder, device)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text, in order."""
        return [vector.tolist() for vector in self.encoder.encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        return [float(value) for value in self.encoder.encode_queries([text])[0]]
