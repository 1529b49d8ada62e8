"""Long results of an agent's tools: cut before a model sees them, and kept so that it can read the rest."""

import logging
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from precise_rag._processes import ProcessLock
from precise_rag.checks import check_number, check_text
from precise_rag.encoders.local import count_packaged_tokens
from precise_rag.evidence.pruning import Pruned, prune
from precise_rag.redaction import redacted, without_secrets
from precise_rag.rerank import load_reranker
from precise_rag.tokens import CountTokens, counting

READ_RESULT = "read_result"
"""The name of the tool that reads the rest of a result."""
_ASKING = ("question", "query", "q", "search", "search_query", "search_term", "input")
"""Names of arguments that usually say what a call is for."""
_LIKELY = 0.03
"""The best probability in a result for what is no question to it, such as "yes, please", is lower."""
_LONGEST_ARGUMENT = 200
_MOST_CHARACTERS = 50_000_000
_log = logging.getLogger(__name__)


class ToolResultPruner:
    """Cuts the long results of tools down to what answers a question, and keeps them to be read.

    It can be shared by threads. What it keeps is in memory, and read by a reference that cannot be guessed.

    max_tokens: tokens to which longer results are cut; at least 100, and at least 40 more than the note below
        a cut result takes.
    reranker, count_tokens: as for `prune`.
    max_results: how many results are kept, of 50 million characters together; the oldest go first.
    keep_seconds: how long a result is kept.
    """

    read_description = (
        "Read more of a tool's result that was cut. reference: from the note in the result. start: the first "
        "character to read, such as 120 for [… 120]. question: in its place, what to look for in the whole."
    )
    """What the tool that reads a result does, for a model."""

    def __init__(
        self,
        max_tokens: int = 1_000,
        *,
        reranker: Any = "default",
        count_tokens: CountTokens | None = None,
        max_results: int = 100,
        keep_seconds: float = 3_600,
    ) -> None:
        check_number("max_results", max_results, least=1, whole=True)
        check_number("keep_seconds", keep_seconds, least=0)
        self.max_tokens, self.max_results, self.keep_seconds = max_tokens, max_results, keep_seconds
        self._reranker = load_reranker(reranker)
        self._count = counting(count_tokens or count_packaged_tokens)
        note = self._n_tokens(_cut_note("a-_9b8c7d6e5", *[_MOST_CHARACTERS] * 2))
        check_number("max_tokens", max_tokens, least=max(100, note + 40), whole=True)
        self._kept: dict[str, tuple[float, str]] = {}
        self._lock = ProcessLock()

    def prune(self, result: str, question: str, otherwise: str = "") -> str:
        """Return a result as a model reads it.

        A result of at most `max_tokens` is returned as it is, and so is one that cannot be cut, or for which
        the question is blank. A longer one is cut by `prune`, and its last line says how the rest is read.
        otherwise: the question if nothing in the result is likely to answer the first one, as for "yes".
        """
        check_text("result", result)
        check_text("question", question)
        check_text("otherwise", otherwise)
        questions = [one for one in (question, otherwise) if one.strip()]
        if not questions or self._n_tokens(result) <= self.max_tokens:
            return result
        reference = secrets.token_urlsafe(9)
        limit = self.max_tokens - self._n_tokens(_cut_note(reference, *[len(result)] * 2))
        try:
            while True:
                pruned = self._pruned(result, questions, limit)
                shown = f"{pruned.text}\n{_cut_note(reference, pruned.n_tokens_before, pruned.n_tokens)}"
                if (over := self._n_tokens(shown) - self.max_tokens) <= 0:
                    break
                limit -= over
        except Exception:  # a tool that worked must not fail by what is done to its result
            _log.warning("a tool's result could not be cut, and is passed on whole", exc_info=True)
            return result
        with self._lock:
            self._kept[reference] = time.monotonic(), result
            self._forget()
        return shown

    def read(self, reference: str, start: int = 0, question: str = "") -> str:
        """Return a part of a kept result, with a line that says where it is.

        reference: from the note in the cut result.
        start: the first character.
        question: if it is not blank, the whole result is cut by it, and `start` does not count.
        If nothing is kept under the reference, or `start` is outside of the result, an error for the model.
        """
        check_text("question", question)
        with self._lock:
            self._forget()
            _, text = self._kept.get(str(reference), (0.0, None))
        if text is None:
            return (
                f"Error: no result is kept under {str(reference)[:40]!r}: it is older than "
                f"{self.keep_seconds / 60:.0f} minutes, or there are newer ones; call the tool again"
            )
        if question.strip():
            return self._pruned(text, [question], self.max_tokens).text
        if type(start) is not int or not 0 <= start < max(len(text), 1):
            return f"Error: start must be within 0 and {len(text) - 1}, got {start!r}"
        end = min(start + 6 * self.max_tokens, len(text))
        while True:
            more = "" if end == len(text) else f"; it goes on at start={end}"
            shown = f"Characters {start} to {end} of {len(text)}{more}.\n{text[start:end]}"
            if end <= start + 1 or self._n_tokens(shown) <= self.max_tokens:
                return shown
            end = start + max(1, (end - start) * 9 // 10)

    def _n_tokens(self, text: str) -> int:
        return int(self._count([text])[0])

    def _pruned(self, text: str, questions: Sequence[str], max_tokens: int) -> Pruned:
        """Cut a text by the first question to which something in it is likely, or else the likeliest."""
        tried: list[tuple[float, Pruned]] = []
        for question in questions:
            try:
                pruned = prune(text, question, max_tokens, reranker=self._reranker, count_tokens=self._count)
            except Exception:
                if not tried:
                    raise
                _log.warning("a tool's result could not be cut by the second question", exc_info=True)
                break
            tried.append((max((one.score for one in pruned.excerpts), default=0.0), pruned))
            if tried[-1][0] >= _LIKELY:
                break
        return max(tried, key=itemgetter(0))[1]

    def _forget(self) -> None:
        """Forget the oldest while they are too old or too many. The lock is held."""
        n_characters = sum(len(text) for _, text in self._kept.values())
        for reference, (since, text) in list(self._kept.items()):
            is_old = time.monotonic() - since > self.keep_seconds
            is_too_much = n_characters > _MOST_CHARACTERS and len(self._kept) > 1
            if not (is_old or is_too_much or len(self._kept) > self.max_results):
                break
            del self._kept[reference]
            n_characters -= len(text)


def _cut_note(reference: str, before: int, after: int) -> str:
    return (
        f"[Cut from {before} to {after} tokens by what was asked. "
        f"{READ_RESULT}(reference='{reference}', start=…) reads what is left out.]"
    )


def questions_of(arguments: Mapping[Any, Any], said: Sequence[str] = ()) -> tuple[str, str]:
    """Return what a call of a tool is for, as a question, and as one to ask if that finds nothing likely.

    arguments: of the call. said: the user's messages, the last one last.
    The question is what is looked for by an argument such as `query`, and the last message; without both,
    all texts among the arguments. The other one, for "yes" or "What about that?", is the short texts among
    the arguments and the last two messages.
    """
    arguments = without_secrets(dict(arguments))
    texts = [value for value in arguments.values() if isinstance(value, str)]
    asking = [value for name in _ASKING if isinstance(value := arguments.get(name), str)]
    short = [text for text in texts if len(text) <= _LONGEST_ARGUMENT]
    return _joined([*asking, *said[-1:]]) or _joined(texts), _joined([*short, *said[-2:]])


def _joined(texts: Iterable[str]) -> str:
    """Texts that are not blank, each once, one on a line, without keys: a reranker may be far away."""
    return redacted("\n".join(dict.fromkeys(filter(None, map(str.strip, texts)))))
