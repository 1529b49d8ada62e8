"""Prompts of encoders: what a model was trained to read before each query and before each text."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from precise_rag.errors import ModelError


class Prompts(NamedTuple):
    """What stands before each query, and before each text of a document; "" for nothing."""

    query: str = ""
    document: str = ""


_OF_QUERIES, _OF_DOCUMENTS = ("query",), ("document", "passage", "corpus")
_FAMILIES = {
    r"(?<![a-z0-9])e5(?![a-z0-9])(?!.*instruct)": Prompts("query: ", "passage: "),
    r"bge-(small|base|large)-en": Prompts("Represent this sentence for searching relevant passages: "),
    r"nomic-embed-text": Prompts("search_query: ", "search_document: "),
}
"""By a pattern for the names of models whose files do not tell; others, such as gte, have none."""


def prompts_of(settings: Mapping[str, Any], source: str) -> Prompts:
    """Return the prompts of a model.

    settings: its config_sentence_transformers.json. The default prompt is for what has none of its own. If
        all are empty, as sentence-transformers writes them where it knows of none, the family tells.
    source: the model's folder, or its name on the hub, by which its family is found.
    Raises ModelError for a prompt that is not text.
    """
    given, common = settings.get("prompts") or {}, settings.get("default_prompt_name")
    if not all(isinstance(prompt, str | None) for prompt in given.values()):
        raise ModelError(f"{source}: each of the prompts must be a text, got {given!r:.60}")
    others = [common] if common not in (*_OF_QUERIES, *_OF_DOCUMENTS) else []
    roles = ([*_OF_QUERIES, *others], [*_OF_DOCUMENTS, *others])
    told = Prompts(*(next((given[name] for name in names if given.get(name)), "") for names in roles))
    name = re.split(r"[/\\]", re.sub(r"[/\\]snapshots[/\\]\w+$", "", source.lower()))[-1]
    families = (prompts for pattern, prompts in _FAMILIES.items() if re.search(pattern, name))
    return told if any(told) else next(families, told)
