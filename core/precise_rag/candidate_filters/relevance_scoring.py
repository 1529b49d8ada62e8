"""Score chunks for relevance, as conversations that do no input or output (`precise_rag.llm.session`).

A score that is not certain from the model's reply is left out, never guessed.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from precise_rag.errors import ContentFilterError, ContextLengthError, LLMError
from precise_rag.llm.json_objects import json_objects
from precise_rag.llm.session import CallOutcome, Conversation
from precise_rag.prompts import Prompt
from precise_rag.prompts.relevance import RELEVANCE_STAGES, RelevanceStage
from precise_rag.types import Completion


class Relevance(NamedTuple):
    """The three scores of a chunk (ChunkRAG, section 3), each in [0, 1]."""

    base: float
    reflection: float
    critic: float

    @property
    def score(self) -> float:
        """Their mean. The paper does not say how the three are combined."""
        return (self.base + self.reflection + self.critic) / 3.0


Score = TypeVar("Score")
Ask = Callable[[Sequence[Prompt]], Conversation[list[CallOutcome]]]
"""Asks the model; returns one outcome for each prompt."""
Scoring = Conversation[list[Relevance | str]]
"""Returns, for each text, its Relevance or why it has none."""
_UNREADABLE = "the model gave no readable score, twice"
_TRIES = 2


def score_in_batches(
    ask: Ask, prompt: Callable[[Sequence[str]], Prompt], texts: Sequence[str], batch_size: int
) -> Scoring:
    """Ask for all three scores of `batch_size` texts in one call. prompt: makes it of the texts.

    Each text is shown under an id with the prompt's mark, which no text can guess.
    """
    results = yield from _ask_twice(
        ask,
        range(len(texts)),
        batch_size,
        lambda rows: prompt([texts[row] for row in rows]),
        lambda reply, ids: parse_scores(reply.spoken, ids),
    )
    return [results[row] for row in range(len(texts))]


def score_one_by_one(ask: Ask, prompt: Callable[..., Prompt], texts: Sequence[str]) -> Scoring:
    """Ask for base score, reflection and critic of each text in three calls, as the paper does.

    prompt: makes one of a text, the stage and the `earlier` scores.
    """
    scores: list[dict[RelevanceStage, float]] = [{} for _ in texts]
    failed: dict[int, str] = {}

    def of_stage(stage: RelevanceStage, rows: Sequence[int]) -> Prompt:
        (row,) = rows
        return prompt(texts[row], stage, earlier=scores[row])

    for stage in RELEVANCE_STAGES:
        rows = [row for row in range(len(texts)) if row not in failed]
        results = yield from _ask_twice(ask, rows, 1, partial(of_stage, stage), _only_score)
        for row, result in results.items():
            if isinstance(result, str):
                failed[row] = result
            else:
                scores[row][stage] = result
    return [failed[row] if row in failed else Relevance(**scores[row]) for row in range(len(texts))]


class _Batch(NamedTuple):
    """Rows to ask about in one call. tries: calls that are left if the reply cannot be read."""

    rows: Sequence[int]
    tries: int


def _ask_twice(
    ask: Ask,
    rows: Sequence[int],
    batch_size: int,
    prompt: Callable[[Sequence[int]], Prompt],
    parse: Callable[[Completion, Collection[str]], Mapping[str, Score]],
) -> Conversation[dict[int, Score | str]]:
    """Ask about `rows`, and once more about those whose score cannot be read, unless two replies hold none.

    A batch that the model refuses, because it is too long or for its content, is halved, until the texts that
    cause it stand alone: fewer than twice as many calls as texts. Any other failure of a call is final. If
    replies are cut off, what they lack is asked for in batches of as many as they held, or a quarter.
    Returns, for each row, its score or why it has none.
    """
    results: dict[int, Score | str] = {}
    size = batch_size
    batches = _in_batches(rows, batch_size, _TRIES)
    while batches:
        prompts = [prompt(batch.rows) for batch in batches]
        outcomes = yield from ask(prompts)
        smaller: list[_Batch] = []
        unread: list[int] = []
        for batch, asked, outcome in zip(batches, prompts, outcomes, strict=True):
            if isinstance(outcome, Completion):
                keys = {f"{asked.mark}{number}": row for number, row in enumerate(batch.rows, start=1)}
                scores = {keys[key]: score for key, score in parse(outcome, keys).items()}
                results |= scores
                if outcome.cut_off:
                    size = max(1, batch_size // 4, min(size, len(scores)))
            left = [row for row in batch.rows if row not in results]
            if isinstance(outcome, ContextLengthError | ContentFilterError) and len(left) > 1:
                smaller += _in_batches(left, (len(left) + 1) // 2, batch.tries)
            elif isinstance(outcome, LLMError):
                results |= dict.fromkeys(left, str(outcome))
            elif batch.tries > 1:
                unread += left
            else:
                results |= dict.fromkeys(left, _UNREADABLE)
        if len(batches) > 1 and len(unread) == len(rows):
            results |= dict.fromkeys(unread, _UNREADABLE)
            unread = []
        batches = smaller + _in_batches(unread, size, _TRIES - 1)
    return results


def _in_batches(rows: Sequence[int], size: int, tries: int) -> list[_Batch]:
    return [_Batch(rows[first : first + size], tries) for first in range(0, len(rows), size)]


def _only_score(reply: Completion, ids: Collection[str]) -> Mapping[str, float]:
    """The score for the only text; none if the reply is cut off, perhaps in the middle of the number."""
    score = None if reply.cut_off else parse_score(reply.spoken)
    return {} if score is None else dict.fromkeys(ids, score)


def parse_scores(reply: str, ids: Collection[str]) -> dict[str, Relevance]:
    """Read the scores of several chunks, whatever their order and the prose around them.

    reply: the model's text, with a JSON object for each chunk.
    ids: the ids that were shown to the model.
    Returns the scores by id. Left out are ids that are not in `ids`, and those that a cut-off reply does not
    complete. So are ids that lack a score, have one outside [0, 1], or have two different sets of scores.
    """
    by_id: defaultdict[str, set[Relevance]] = defaultdict(set)
    for item in json_objects(reply, "scores")[0]:
        scores: Any = [_unit_number(item.get(stage)) for stage in RELEVANCE_STAGES]
        if isinstance(key := item.get("id"), str) and key in ids and None not in scores:
            by_id[key].add(Relevance(*scores))
    return {key: found.pop() for key, found in by_id.items() if len(found) == 1}


def parse_score(reply: str) -> float | None:
    """Read a single score in [0, 1], given as JSON or as a bare number; None without one."""
    scores = {_unit_number(item["score"]) for item in json_objects(reply)[0] if "score" in item}
    scores = scores or {_unit_number(reply.strip())}
    return scores.pop() if len(scores) == 1 else None


def _unit_number(value: Any) -> float | None:
    """`value` as a number in [0, 1]; it may be a string. None if it is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0.0 <= number <= 1.0 else None
