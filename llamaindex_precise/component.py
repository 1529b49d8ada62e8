"""What the node parsers and postprocessors share: they are their settings, nothing else."""

from collections.abc import Mapping
from typing import Any, Self

from llama_index.core.bridge.pydantic import ConfigDict
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseComponent

from precise_rag.errors import InputError


class SettingsComponent(BaseComponent):
    """A component that `to_dict`, `from_dict` and `pickle` carry as its settings alone.

    Models and clients are loaded again where the settings arrive, so that worker processes are
    sent a few numbers and no weights. An unknown setting is an error.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    @classmethod
    def class_name(cls) -> str:
        """The name under which settings are saved."""
        return cls.__name__

    @classmethod
    def from_defaults(cls, **settings: Any) -> Self:
        """The component with the given settings, and defaults for the others."""
        return cls(**settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """The component that `to_dict` described; `kwargs` replace or add settings.

        What cannot be written down, such as a function or a client, is passed as keyword.
        Raises InputError if a custom `id_func` was in use and none is passed.
        """
        settings = {**data, **kwargs}
        saved = settings.get("id_func")
        if isinstance(saved, Mapping):
            if saved.get("id_func_name") != default_id_func.__name__:
                raise InputError(
                    f"these settings were saved with id_func {saved.get('id_func_name')!r}, "
                    "which is code; pass it again: from_dict(data, id_func=…)"
                )
            del settings["id_func"]
        return super().from_dict(settings)

    def __reduce__(self) -> tuple[Any, ...]:
        settings = {
            name: getattr(self, name) for name in type(self).model_fields if name != "callback_manager"
        }
        return _rebuild, (type(self), settings)


def _rebuild(cls: type[SettingsComponent], settings: dict[str, Any]) -> SettingsComponent:
    return cls(**settings)
