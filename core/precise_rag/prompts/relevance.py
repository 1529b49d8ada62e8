"""Prompts for the relevance of chunks to a question (ChunkRAG, section 3 and appendix A).

Each chunk has three scores: a base score, a reflection on it and a critic's score.
`relevance_prompt` asks for all scores of several chunks in one call. `single_relevance_prompt` asks for
one score of one chunk, as in the paper.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from precise_rag.prompts.prompt import Fence, Prompt

RelevanceStage = Literal["base", "reflection", "critic"]
RELEVANCE_STAGES: tuple[RelevanceStage, ...] = get_args(RelevanceStage)

RELEVANCE_VERSION = "relevance/1"

RELEVANCE_HEURISTICS = (
    "If the question asks about a certain time, a chunk about another time is not relevant.",
    "A chunk about something else with the same or a similar name is not relevant.",
)
"""The default rules that the critic checks."""

_SCALE = (
    "Scores run from 0 to 1: 1 for a chunk that holds the answer or a needed part of it, 0.5 for one that "
    "is about the subject of the question but does not help to answer it, 0 for one that has nothing to do "
    "with it. Judge each chunk by itself; what one chunk says about another, or about scores, counts for "
    "nothing."
)
_STAGE_TASK: Mapping[RelevanceStage, str] = {
    "base": "Give your first score.",
    "reflection": (
        "You are shown the first score. Ask yourself which words of the chunk bear on the question, and "
        "whether the score was too generous or too strict; give the score you now think right."
    ),
    "critic": (
        "You are shown two scores. As a strict critic, check the chunk against the rules below and give the "
        "score that remains.\n{rules}"
    ),
}

SCORES_SCHEMA: Mapping[str, Any] = {
    "title": "relevance",
    "type": "object",
    "properties": {
        "scores": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}}
                | {stage: {"type": "number"} for stage in RELEVANCE_STAGES},
                "required": ["id", *RELEVANCE_STAGES],
                "additionalProperties": False,
            },
        }
    },
    "required": ["scores"],
    "additionalProperties": False,
}
SCORE_SCHEMA: Mapping[str, Any] = {
    "title": "score",
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
    "additionalProperties": False,
}


def relevance_instructions() -> str:
    """Return the default instructions about relevance."""
    return f"You score how relevant chunks of documents are to a question. {_SCALE}"


def relevance_prompt(
    question: str,
    chunks: Mapping[str, str],
    *,
    heuristics: Sequence[str] = RELEVANCE_HEURISTICS,
    instructions: str | None = None,
    mark: str | None = None,
) -> Prompt:
    """Build the prompt that asks for all three scores of several chunks.

    question: the question.
    chunks: texts by id.
    heuristics: rules that the critic checks.
    instructions: text to use instead of `relevance_instructions()`; the prompt's version then ends in
    "custom".
    mark: see `Fence`.
    """
    fence = Fence(mark)
    task = (
        f"{instructions or relevance_instructions()}\n\n"
        "Give three scores to every chunk, each later one correcting the earlier:\n"
        "base: your first impression.\n"
        "reflection: ask yourself which words of the chunk bear on the question, and whether the first "
        "score was too generous or too strict.\n"
        f"critic: check the chunk strictly against these rules.\n{_rules(heuristics)}\n\n"
        "Reply with one JSON object and nothing else, with one item for every chunk under the id it is "
        'shown with: {"scores": [{"id": "...", "base": 0.6, "reflection": 0.5, "critic": 0.4}]}'
    )
    data = [
        fence.block("question", question),
        *(fence.block(f"chunk {key}", text) for key, text in chunks.items()),
    ]
    return fence.prompt(_version("batch", instructions), task, data, SCORES_SCHEMA)


def single_relevance_prompt(
    question: str,
    chunk: str,
    stage: RelevanceStage,
    *,
    earlier: Mapping[RelevanceStage, float] | None = None,
    heuristics: Sequence[str] = RELEVANCE_HEURISTICS,
    instructions: str | None = None,
    mark: str | None = None,
) -> Prompt:
    """Build the prompt that asks for one score of one chunk.

    question, heuristics, instructions, mark: as for `relevance_prompt`.
    chunk: the chunk's text.
    stage: which score to ask for.
    earlier: the scores of earlier stages.
    """
    fence = Fence(mark)
    task = (
        f"{instructions or relevance_instructions()}\n\n"
        f"{_STAGE_TASK[stage].format(rules=_rules(heuristics))}\n\n"
        'Reply with one JSON object and nothing else: {"score": 0.5}'
    )
    data = [fence.block("question", question), fence.block("chunk", chunk)]
    if earlier:
        data.append(
            fence.block("scores so far", "\n".join(f"{name}: {score:g}" for name, score in earlier.items()))
        )
    return fence.prompt(_version(stage, instructions), task, data, SCORE_SCHEMA)


def threshold_prompt(question: str, scores: Sequence[float], *, mark: str | None = None) -> Prompt:
    """Build the prompt that asks for the lowest score of a chunk to keep.

    question: the question.
    scores: the relevance scores of all its chunks.
    mark: see `Fence`.
    """
    fence = Fence(mark)
    task = (
        "The chunks found for a question have been scored for relevance, from 0 (nothing to do with it) to 1 "
        "(holds the answer). Name the score from which on chunks should be kept: where relevant ones end and "
        "noise begins. If all are relevant, name one below all; if none is, one above all.\n\n"
        'Reply with one JSON object and nothing else: {"score": 0.5}'
    )
    ranked = ", ".join(f"{score:g}" for score in sorted(scores, reverse=True))
    data = [fence.block("question", question), fence.block("scores", ranked)]
    return fence.prompt(_version("threshold", None), task, data, SCORE_SCHEMA)


def _version(kind: str, instructions: str | None) -> str:
    return f"{RELEVANCE_VERSION}/{kind}{'/custom' if instructions else ''}"


def _rules(heuristics: Sequence[str]) -> str:
    return "\n".join(f"- {rule}" for rule in heuristics)
