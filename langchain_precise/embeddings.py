"""Core encoders as LangChain embeddings, and the base of components that are saved as settings."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

from langchain_core.embeddings import Embeddings
from langchain_core.load.serializable import Serializable
from pydantic import ConfigDict

from precise_rag.checks import items_of, own_errors
from precise_rag.encoded import encode_documents, encode_queries
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.protocols import Encoder


class SettingsComponent(Serializable):
    """A component whose settings are given when it is made: a copy with other ones is made anew."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", frozen=True)

    def __init__(self, **fields: Any) -> None:
        with own_errors(type(self).__name__, type(self).model_fields):
            super().__init__(**fields)

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return True: settings can be saved, but a model only if it is given by name."""
        return True

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, which works by the settings in `update`."""
        copy, given = super().model_copy(deep=deep), self.model_fields_set
        return type(self)(**{n: getattr(copy, n) for n in given} | dict(update)) if update else copy


class PreciseEmbeddings(SettingsComponent, Embeddings):
    """A core encoder as LangChain embeddings; the default one works offline.

    model: a name or path, an encoder object, or anything else that `load_encoder` takes.
    device: "cpu", "cuda", …; default: a GPU if there is one.
    show_progress: show a progress bar while documents are embedded; default: False.
    """

    model: Any = DEFAULT_ENCODER
    device: str | None = None
    show_progress: bool = False

    def __init__(self, model: Any = DEFAULT_ENCODER, device: str | None = None, **fields: Any) -> None:
        super().__init__(model=model, device=device, **fields)
        _ = self.encoder  # errors are raised now

    @cached_property
    def encoder(self) -> Encoder:
        """The core encoder."""
        return load_encoder(self.model, self.device, argument="model")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector of unit length per text, in order."""
        texts = list(items_of("texts", texts, str))
        return list(encode_documents(self.encoder, texts, show_progress=self.show_progress).tolist())

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return list(encode_queries(self.encoder, [text])[0].tolist())
