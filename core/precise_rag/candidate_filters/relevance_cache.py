"""A cache of relevance scores by content."""

import hashlib
import logging
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from precise_rag.candidate_filters.relevance_parsing import Relevance, relevance_of
from precise_rag.prompts.relevance import RELEVANCE_VERSION
from precise_rag.redaction import message_of

_log = logging.getLogger(__name__)

StoredScores = tuple[float, float, float]
"""Base score, reflection and critic, as they are stored."""


@dataclass(frozen=True, slots=True)
class RelevanceCache:
    """The stored scores for one query. A mapping that fails is logged, and costs no scores.

    store: the mapping; None stores nothing. settings: of the filter. model: its name.
    """

    store: MutableMapping[str, StoredScores] | None
    settings: Any
    model: str
    query: str

    def get(self, text: str) -> Relevance | None:
        """Return the stored scores of a text, or None."""
        if self.store is None:
            return None
        try:
            stored = self.store.get(self._key(text))
        except Exception as error:
            _log.warning("the cache of relevance scores cannot be read: %s", message_of(error))
            return None
        return relevance_of(stored)

    def put(self, text: str, relevance: Relevance) -> None:
        """Store the scores of a text."""
        if self.store is None:
            return
        try:
            self.store[self._key(text)] = (*relevance,)
        except Exception as error:
            _log.warning("the cache of relevance scores cannot be written: %s", message_of(error))

    def _key(self, text: str) -> str:
        settings = self.settings
        asked = (
            RELEVANCE_VERSION,
            self.model,
            settings.mode,
            settings.instructions or "",
            *settings.heuristics,
        )
        content = "\0".join((*asked, self.query, text)).encode("utf-8", "surrogatepass")
        return hashlib.sha256(content).hexdigest()
