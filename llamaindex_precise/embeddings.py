"""Core encoders as LlamaIndex embeddings, and which encoder a component uses."""

import asyncio
from functools import cached_property
from typing import Any, TypeAlias

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from llama_index.core.settings import Settings

from llamaindex_precise.component import SettingsComponent
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.protocols import Encoder

EmbedModel: TypeAlias = BaseEmbedding | Encoder | str | None
"""A LlamaIndex embedding, a core encoder, the name or path of one, or None for the default."""


class PreciseEmbedding(SettingsComponent, BaseEmbedding):
    """A core encoder wherever LlamaIndex wants an embedding; offline with the default model."""

    model_name: str = Field(default=DEFAULT_ENCODER, description="Name or path, as for load_encoder.")
    device: str | None = Field(default=None, description='"cpu", "cuda", …; None: the best there is.')
    embed_batch_size: int = Field(default=256, description="Texts per call.", gt=0, le=2048)

    @cached_property
    def encoder(self) -> Encoder:
        """The core encoder, loaded on first use."""
        return load_encoder(self.model_name, device=self.device)

    def _get_query_embedding(self, query: str) -> list[float]:
        return _floats(self.encoder.encode_queries([query])[0])

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [_floats(row) for row in self.encoder.encode(texts)]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


class EncoderComponent(SettingsComponent):
    """A component with an encoder, which its saved settings know by name."""

    embed_model: EmbedModel = Field(
        default=None,
        exclude=True,
        description="A LlamaIndex embedding, a core encoder, or the name or path of one.",
    )
    encoder_name: str = Field(default="", description="Encoder in use; saved in place of embed_model.")


def resolve_encoder(embed_model: EmbedModel = None, name: str = "") -> Encoder:
    """The core encoder for `embed_model`.

    None means `Settings.embed_model` if the application has set one, and the core's default
    encoder if not: asking `Settings` for its own default would reach for OpenAI. `name` is that of
    the encoder which saved settings were made with; it is taken from `Settings` if it is the one
    set there, and else loaded by name.
    """
    if embed_model is None:
        embed_model = Settings._embed_model
        if name and (embed_model is None or resolve_encoder(embed_model).name != name):
            return load_encoder(name)
    if isinstance(embed_model, PreciseEmbedding):
        return embed_model.encoder
    return load_encoder(DEFAULT_ENCODER if embed_model is None else embed_model)


def _floats(row: Any) -> list[float]:
    values: list[float] = row.tolist()
    return values
