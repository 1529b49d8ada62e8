"""The base of the node parsers, postprocessors and embeddings: components that are saved as settings."""

from functools import partial
from typing import Any, Self

from llama_index.core.bridge.pydantic import ConfigDict
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseComponent

from precise_rag.checks import own_errors


class SettingsComponent(BaseComponent):
    """A component that `to_dict`, `from_dict` and `pickle` carry as its settings alone.

    Models and clients are loaded again where the settings arrive, so worker processes receive no
    weights. Unknown settings raise an InputError.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def __init__(self, **settings: Any) -> None:
        with own_errors(type(self).__name__, type(self).model_fields):
            super().__init__(**settings)

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
