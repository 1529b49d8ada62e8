"""Long results of an agent's tools: cut before a model sees them, and kept so that it can read the rest."""

import json
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from precise_rag.checks import check_number, check_text, items_of
from precise_rag.errors import InputError
from precise_rag.evidence.pruning import prune
from precise_rag.rerank import load_reranker
from precise_rag.tokens import estimate_tokens

READ_RESULT = "read_result"
"""The name of the tool that reads the rest of a result."""

READ_RESULT_DESCRIPTION = (
    "Read more of a tool's result that was cut. reference: from the note in the result. start: the first "
    "character to read, such as 120 for [… 120-3400]. question: in its place, what to look for in the whole."
)
"""What that tool does, for a model."""

_LEAST_TOKENS = 100
_NOTE_TOKENS = 48
_MOST_CHARACTERS = 50_000_000
_LONGEST_QUESTION = 2_000
_ASKING = ("question", "query", "q", "search", "search_query", "search_term", "input")
"""Names of arguments that usually say what a call is for."""
_ESTIMATED_CHARACTERS = 6
"""Most characters of a token, as they are estimated, in Latin text without spaces."""

_log = logging.getLogger(__name__)


class ToolResultPruner:
    """Cuts the long results of tools down to what answers a question, and keeps them to be read.

    It can be shared by threads. What it keeps is in memory, and read by a reference that cannot be guessed.

    max_tokens: a result with more is cut to at most so many, by an estimate; at least 100.
    reranker: scores the sentences; anything that `load_reranker` takes.
    max_results: how many results are kept; the oldest are forgotten first. All together have at most 50
        million characters.
    keep_seconds: how long a result is kept.
    clock: returns seconds.
    """

    def __init__(
        self,
        max_tokens: int = 1_000,
        *,
        reranker: Any = "default",
        max_results: int = 100,
        keep_seconds: float = 3_600,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_number("max_tokens", max_tokens, least=_LEAST_TOKENS, whole=True)
        check_number("max_results", max_results, least=1, whole=True)
        check_number("keep_seconds", keep_seconds, least=0)
        self.max_tokens, self.max_results, self.keep_seconds = max_tokens, max_results, keep_seconds
        self._reranker = load_reranker(reranker)
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self._lock = threading.Lock()

    def prune(self, result: str, question: str) -> str:
        """Return a result as a model reads it.

        A result of at most `max_tokens` is returned as it is, and so is one that cannot be cut, or for which
        the question is blank. A longer one is cut as `prune` does, and says how the rest is read; JSON stays
        JSON.
        """
        check_text("result", result)
        check_text("question", question)
        question = question.strip()[-_LONGEST_QUESTION:]
        if not question or not self.is_long(result):
            return result
        try:
            pruned = prune(result, question, self.max_tokens - _NOTE_TOKENS, reranker=self._reranker)
        except Exception:  # a tool that worked must not fail by what is done to its result
            _log.warning("a tool's result could not be cut, and is passed on whole", exc_info=True)
            return result
        reference = self._keep(result)
        note = (
            f"Cut from {pruned.n_tokens_before} to {pruned.n_tokens} tokens by what was asked. "
            f"{READ_RESULT}(reference='{reference}', start=…) reads what is left out."
        )
        return _with_note(pruned.text, note)

    def is_long(self, result: str) -> bool:
        """Whether a result has more than `max_tokens`."""
        return estimate_tokens(result) > self.max_tokens

    def read(self, reference: str, start: int = 0, question: str = "") -> str:
        """Return a part of a kept result, with a line that says where it is.

        reference: from the note in the cut result.
        start: the first character.
        question: if it is not blank, the whole result is cut by it, and `start` does not count.
        Raises InputError if nothing is kept under the reference, or `start` is outside of the result.
        """
        text = self._kept_text(reference)
        if question.strip():
            return prune(text, question, self.max_tokens, reranker=self._reranker).text
        if not 0 <= start < max(len(text), 1):
            raise InputError(f"start must be within 0 and {len(text) - 1}, got {start}")
        part = text[start : start + self.max_tokens * _ESTIMATED_CHARACTERS]
        while estimate_tokens(part) > self.max_tokens - _NOTE_TOKENS:
            part = part[: len(part) * 9 // 10]
        end = start + len(part)
        more = "" if end == len(text) else f"; it goes on at start={end}"
        return f"Characters {start} to {end} of {len(text)}{more}.\n{part}"

    def _keep(self, text: str) -> str:
        reference = secrets.token_urlsafe(9)
        with self._lock:
            self._forget()
            self._kept[reference] = (self._clock(), text)
            n_characters = sum(len(kept) for _, kept in self._kept.values())
            while len(self._kept) > 1 and (
                len(self._kept) > self.max_results or n_characters > _MOST_CHARACTERS
            ):
                n_characters -= len(self._kept.popitem(last=False)[1][1])
        return reference

    def _kept_text(self, reference: str) -> str:
        with self._lock:
            self._forget()
            kept = self._kept.get(reference)
        if kept is None:
            raise InputError(
                f"no result is kept under {str(reference)[:40]!r}: it is older than "
                f"{self.keep_seconds / 60:.0f} minutes, or there are newer ones; call the tool again"
            )
        return kept[1]

    def _forget(self) -> None:
        """Forget what is too old. The lock is held."""
        oldest = self._clock() - self.keep_seconds
        while self._kept and next(iter(self._kept.values()))[0] < oldest:
            self._kept.popitem(last=False)


def question_of(arguments: Mapping[str, Any], message: str = "") -> str:
    """Return what a call of a tool is for, as a question.

    arguments: of the call. Those that say what is looked for, such as `query`, come first.
    message: what the user asked. Without it and without such an argument, all texts among the arguments.
    """
    asking = [arguments[name] for name in _ASKING if isinstance(arguments.get(name), str)]
    said = [text.strip() for text in (*asking, message) if text.strip()]
    said = said or [value for value in arguments.values() if isinstance(value, str) and value.strip()]
    return "\n".join(dict.fromkeys(said))


_REST = '"…rest"'
"""The key of the note in an object."""


def excluded_names(names: Iterable[str]) -> frozenset[str]:
    """Return the names of the tools whose results are not cut. Raises InputError for a single text."""
    if isinstance(names, str):
        raise InputError(f"exclude_tools must be a list of names, got {names!r}; pass [{names!r}]")
    return frozenset(items_of("exclude_tools", names, str))


def _with_note(text: str, note: str) -> str:
    """A text with the note at its end; in JSON as one more element."""
    shown = json.dumps(note, ensure_ascii=False)
    if _is_json(text, dict, list):
        closing = text[-1]
        comma = ", " if len(text) > 2 else ""
        return f"{text[:-1]}{comma}{shown if closing == ']' else f'{_REST}: {shown}'}{closing}"
    is_lines = _is_json(text.partition("\n")[0], dict, list, str)
    return f"{text}\n{shown}" if is_lines else f"{text}\n[{note}]"


def _is_json(text: str, *kinds: type) -> bool:
    try:
        return isinstance(json.loads(text), kinds)
    except (ValueError, RecursionError):
        return False
