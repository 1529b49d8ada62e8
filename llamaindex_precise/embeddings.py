"""Core encoders as LlamaIndex embeddings, and the bases of components, which are saved as settings."""

import asyncio
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Self, TypeAlias

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseComponent
from llama_index.core.settings import Settings

from precise_rag.checks import own_errors
from precise_rag.encoded import encode_documents, encode_queries
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.protocols import Encoder

EmbedModel: TypeAlias = BaseEmbedding | Encoder | str | None
"""A LlamaIndex embedding, a core encoder, the name or path of one, or None for the default."""
_ONE_LIMIT = {"chunk_size", "max_tokens"}


class SettingsComponent(BaseComponent):
    """A component that `to_dict`, `from_dict` and `pickle` carry as its settings alone.

    Models and clients are loaded again where the settings arrive, so worker processes receive no
    weights. Unknown settings raise an InputError. A setting may be changed later; if that is refused,
    nothing changes.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def __init__(self, **settings: Any) -> None:
        with own_errors(type(self).__name__, type(self).model_fields):
            super().__init__(**settings)
        self.__dict__["_given"] = settings  # the fields may show more, such as defaults of a model

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "callback_manager" or name not in type(self).model_fields or "_given" not in self.__dict__:
            return super().__setattr__(name, value)
        made = self.model_copy(update={name: value})
        for part in ("__dict__", "__pydantic_private__"):
            object.__setattr__(self, part, getattr(made, part))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, which works by the settings in `update`."""
        copy, update = super().model_copy(deep=deep), dict(update or {})
        replaced = _ONE_LIMIT if _ONE_LIMIT & update.keys() else ()
        kept = {name: given for name, given in copy.__dict__["_given"].items() if name not in replaced}
        return type(self)(**kept | update) if update else copy

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which settings are saved."""
        return cls.__name__

    @classmethod
    def from_defaults(cls, **settings: Any) -> Self:
        """Return a component with these settings and defaults for the rest."""
        return cls(**settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """Return the component that `to_dict` described.

        kwargs: settings that replace saved ones, and those that are not saved, such as clients and
            functions, of which only the names are.
        """
        settings = {**data, **kwargs}
        if settings.get("id_func") == {"id_func_name": default_id_func.__name__, "title": "id_func"}:
            del settings["id_func"]
        return super().from_dict(settings)

    def __reduce__(self) -> tuple[Any, ...]:
        names = (name for name in type(self).model_fields if name != "callback_manager")
        return partial(type(self), **{name: getattr(self, name) for name in names}), ()


class PreciseEmbedding(SettingsComponent, BaseEmbedding):
    """A core encoder as a LlamaIndex embedding; the default one works offline.

    model_name: name or path, as for `load_encoder`.
    device: "cpu", "cuda", …; default: a GPU if there is one.
    """

    model_name: str = DEFAULT_ENCODER
    device: str | None = None
    embed_batch_size: int = Field(default=256, gt=0, le=2048)

    def __init__(self, model_name: str | None = None, **settings: Any) -> None:
        super().__init__(**settings if model_name is None else settings | {"model_name": model_name})

    @cached_property
    def encoder(self) -> Encoder:
        """The core encoder, loaded at its first use."""
        return load_encoder(self.model_name, device=self.device)

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(encode_queries(self.encoder, [query])[0].tolist())

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return list(encode_documents(self.encoder, texts).tolist())

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


class EncoderComponent(SettingsComponent):
    """A component with an encoder; its saved settings hold the encoder's name.

    embed_model: a LlamaIndex embedding, a core encoder, or the name or path of one. It is not saved.
    encoder_name: the encoder in use; saved in place of `embed_model`.
    """

    embed_model: Any = Field(default=None, exclude=True)
    encoder_name: str = ""

    def _given_encoder(self) -> Encoder | None:
        return self._load_encoder() if self.embed_model is not None or self.encoder_name else None

    def _load_encoder(self) -> Encoder:
        encoder = resolve_encoder(self.embed_model, self.encoder_name)
        self.encoder_name = encoder.name
        return encoder


def resolve_encoder(embed_model: EmbedModel = None, name: str = "") -> Encoder:
    """Return the core encoder for `embed_model`.

    embed_model: default `Settings.embed_model` if the application has set one, otherwise the core's
    default encoder. (The default of `Settings` itself would be OpenAI's.) "local" and "local:NAME" are
    what LlamaIndex means by them.
    name: the encoder of saved settings. Without an `embed_model` it is loaded by this name, unless
    the application's embedding has the same one.
    """
    if embed_model is None:
        embed_model = Settings._embed_model
        if name and (embed_model is None or resolve_encoder(embed_model).name != name):
            return load_encoder(name)
    if isinstance(embed_model, str) and embed_model.split(":")[0] == "local":
        embed_model = embed_model.partition(":")[2] or "BAAI/bge-small-en-v1.5"
    return load_encoder(DEFAULT_ENCODER if embed_model is None else embed_model, argument="embed_model")
