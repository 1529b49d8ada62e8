"""Score chunks for relevance, as generators that do no input or output.

A generator yields lists of prompts, is sent one CallOutcome for each prompt in the same order, and
returns, for each text, its Relevance or why it has none. The synchronous and the asynchronous filter
drive the same generators.
"""

import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from precise_rag.errors import LLMError
from precise_rag.filtering.relevance_parsing import Relevance, parse_score, parse_scores
from precise_rag.llm.calls import CallOutcome
from precise_rag.prompts import Prompt
from precise_rag.prompts.relevance import (
    RELEVANCE_STAGES,
    RelevanceStage,
    relevance_prompt,
    single_relevance_prompt,
)

Score = TypeVar("Score")
Scoring = Generator[list[Prompt], list[CallOutcome], list[Relevance | str]]
Rows = Mapping[str, int]
"""The rows of the texts in one prompt, by the ids that the model is shown."""

_UNREADABLE = "the model gave no readable score, twice"
_TRIES = 2


def score_in_batches(
    question: str,
    texts: Sequence[str],
    *,
    batch_size: int,
    heuristics: Sequence[str],
    instructions: str | None = None,
) -> Scoring:
    """Ask for all three scores of `batch_size` texts in one call.

    Each text is shown under an id that is new in every prompt, so no other text can guess it.
    """

    def prompt(rows: Rows) -> Prompt:
        chunks = {key: texts[row] for key, row in rows.items()}
        return relevance_prompt(question, chunks, heuristics=heuristics, instructions=instructions)

    results = yield from _ask_twice(range(len(texts)), batch_size, prompt, parse_scores)
    return [results[row] for row in range(len(texts))]


def score_one_by_one(
    question: str, texts: Sequence[str], *, heuristics: Sequence[str], instructions: str | None = None
) -> Scoring:
    """Ask for base score, reflection and critic of each text in three calls, as the paper does."""
    scores: list[dict[RelevanceStage, float]] = [{} for _ in texts]
    failed: dict[int, str] = {}

    def prompt(stage: RelevanceStage, rows: Rows) -> Prompt:
        (row,) = rows.values()
        return single_relevance_prompt(
            question,
            texts[row],
            stage,
            earlier=scores[row],
            heuristics=heuristics,
            instructions=instructions,
        )

    for stage in RELEVANCE_STAGES:
        rows = [row for row in range(len(texts)) if row not in failed]
        results = yield from _ask_twice(rows, 1, partial(prompt, stage), _parse_only_score)
        for row, result in results.items():
            if isinstance(result, str):
                failed[row] = result
            else:
                scores[row][stage] = result
    return [failed[row] if row in failed else Relevance(**scores[row]) for row in range(len(texts))]


def _ask_twice(
    rows: Sequence[int],
    batch_size: int,
    prompt: Callable[[Rows], Prompt],
    parse: Callable[[str, Rows], Mapping[str, Score]],
) -> Generator[list[Prompt], list[CallOutcome], dict[int, Score | str]]:
    """Ask about `rows`, and once more about those whose score cannot be read. A failed call is final.

    Returns, for each row, its score or why it has none.
    """
    results: dict[int, Score | str] = {}
    waiting = list(rows)
    for _ in range(_TRIES):
        if not waiting:
            break
        batches = [
            {f"{row}-{secrets.token_hex(3)}": row for row in waiting[first : first + batch_size]}
            for first in range(0, len(waiting), batch_size)
        ]
        outcomes = yield [prompt(batch) for batch in batches]
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, LLMError):
                results |= dict.fromkeys(batch.values(), str(outcome))
            else:
                results |= {batch[key]: score for key, score in parse(outcome.text, batch).items()}
        waiting = [row for row in waiting if row not in results]
    return results | dict.fromkeys(waiting, _UNREADABLE)


def _parse_only_score(reply: str, rows: Rows) -> Mapping[str, float]:
    score = parse_score(reply)
    return {} if score is None else dict.fromkeys(rows, score)
