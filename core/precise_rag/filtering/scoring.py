"""Relevance scoring as a conversation: it asks for waves of prompts and never calls a model.

    list[Prompt] → list[Completion | LLMError], in the same order

Generators that do no input or output, so that the synchronous and the asynchronous filter share
every decision. Each returns, for each text, its Relevance or why it has none.
"""

import secrets
from collections.abc import Generator, Sequence

from precise_rag.errors import LLMError
from precise_rag.filtering.relevance_reply import Relevance, read_score, read_scores
from precise_rag.llm.calls import Reply
from precise_rag.prompts import Prompt
from precise_rag.prompts.relevance import (
    RELEVANCE_STAGES,
    RelevanceStage,
    relevance_prompt,
    single_relevance_prompt,
)

Scoring = Generator[list[Prompt], list[Reply], list[Relevance | str]]

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
    """All three scores of `batch_size` texts by one call.

    Each text is shown under an id that is new in every prompt and cannot be guessed from inside
    another text. Texts whose scores cannot be read are asked for once more, together.
    """
    results: list[Relevance | str] = [_UNREADABLE] * len(texts)
    waiting = list(range(len(texts)))
    for _ in range(_TRIES):
        batches = [
            {f"{row}-{secrets.token_hex(3)}": row for row in waiting[first : first + batch_size]}
            for first in range(0, len(waiting), batch_size)
        ]
        if not batches:
            break
        replies = yield [
            relevance_prompt(
                question,
                {key: texts[row] for key, row in batch.items()},
                heuristics=heuristics,
                instructions=instructions,
            )
            for batch in batches
        ]
        waiting = []
        for batch, reply in zip(batches, replies, strict=True):
            if isinstance(reply, LLMError):
                results = [str(reply) if row in batch.values() else r for row, r in enumerate(results)]
                continue
            scores = read_scores(reply.text, batch)
            for key, row in batch.items():
                results[row] = scores.get(key, _UNREADABLE)
                if key not in scores:
                    waiting.append(row)
    return results


def score_one_by_one(
    question: str, texts: Sequence[str], *, heuristics: Sequence[str], instructions: str | None = None
) -> Scoring:
    """The paper's three calls for each text: base score, self-reflection, critic.

    A score that cannot be read is asked for once more; without it the text has none.
    """
    so_far: list[dict[RelevanceStage, float]] = [{} for _ in texts]
    failed: dict[int, str] = {}
    for stage in RELEVANCE_STAGES:
        waiting = [row for row in range(len(texts)) if row not in failed]
        for _ in range(_TRIES):
            if not waiting:
                break
            replies = yield [
                single_relevance_prompt(
                    question,
                    texts[row],
                    stage,
                    earlier=so_far[row],
                    heuristics=heuristics,
                    instructions=instructions,
                )
                for row in waiting
            ]
            unread = []
            for row, reply in zip(waiting, replies, strict=True):
                if isinstance(reply, LLMError):
                    failed[row] = str(reply)
                elif (score := read_score(reply.text)) is None:
                    unread.append(row)
                else:
                    so_far[row][stage] = score
            waiting = unread
        failed |= dict.fromkeys(waiting, _UNREADABLE)
    return [failed[row] if row in failed else Relevance(**so_far[row]) for row in range(len(texts))]
