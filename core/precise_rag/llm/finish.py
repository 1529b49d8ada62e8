"""Why a model ended its reply, in the words of the different servers."""

from collections.abc import Mapping
from typing import Any, Literal

CutOff = Literal["", "length", "content_filter"]

NOT_CUT: CutOff = ""

_REASONS: Mapping[str, CutOff] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "token_limit": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "blocklist": "content_filter",
    "guardrail_intervened": "content_filter",
    "prohibited_content": "content_filter",
    "recitation": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "spii": "content_filter",
}
_FIELDS = ("finish_reason", "stop_reason", "done_reason", "finishReason")


def cut_off(reason: Any) -> CutOff:
    """Return why a reply was cut off; an empty string if it was not, or if the reason is unknown.

    reason: the server's finish reason, for example "stop", "length" or "MAX_TOKENS".
    """
    name = getattr(reason, "name", reason)
    return _REASONS.get(name.strip().lower(), "") if isinstance(name, str) else ""


def reported_cut_off(*places: Any) -> CutOff:
    """Return why a reply was cut off, from the first of `places` that says so.

    places: mappings or objects that may have a field with the finish reason.
    """
    for place in places:
        for field in _FIELDS:
            if cut_short := cut_off(read(place, field)):
                return cut_short
    return ""


def read(value: Any, name: str) -> Any:
    """Return an item of a mapping or an attribute of an object; None if it is missing."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
