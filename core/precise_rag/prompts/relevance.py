"""Prompts for the relevance of chunks to a question (ChunkRAG, section 3 and appendix A).

Each chunk has three scores: a base score, a reflection on it and a critic's score.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from precise_rag.prompts.prompt import Prompt, make_prompt, object_schema

RelevanceStage = Literal["base", "reflection", "critic"]
RELEVANCE_STAGES: tuple[RelevanceStage, ...] = get_args(RelevanceStage)

RELEVANCE_VERSION = "relevance/2"

RELEVANCE_HEURISTICS = (
    "If the question asks about a certain time, a chunk about another time is not relevant.",
    "A chunk about something else with the same or a similar name is not relevant.",
)
"""The default rules that the critic checks."""

_SCALE = (
    "Score from 0 to 1 how relevant each text is: 1 if it holds the answer or part of it, 0.5 "
    "if it only shares the subject."
)
_STAGE_TASK: Mapping[RelevanceStage, str] = {
    "base": "Give a first score.",
    "reflection": "Correct the score so far by the words of the text that matter.",
    "critic": "As a strict critic, give the score that remains under the rules.",
}
_BATCH_TASK = (
    "base: first score. reflection: corrected by the words that matter. critic: what the rules leave.\n"
    "Reply with one JSON object: scores, a list of id (above it), base, reflection and critic of each text."
)
_THRESHOLD_TASK = (
    "The texts found for a question were scored for relevance, from 0 to 1. Choose the lowest score to keep: "
    "where relevant ones end and noise begins. If all are relevant, choose one below all; if none is, one "
    "above all."
)
_ONE_SCORE = "Reply with one JSON object: score, a number."

_SCORES = object_schema({"id": {"type": "string"}, **{one: {"type": "number"} for one in RELEVANCE_STAGES}})
SCORES_SCHEMA = object_schema({"scores": {"type": "array", "items": _SCORES}}, title="relevance")
SCORE_SCHEMA = object_schema({"score": {"type": "number"}}, title="score")


def relevance_prompt(
    question: str,
    texts: Iterable[str],
    *,
    heuristics: Sequence[str] = RELEVANCE_HEURISTICS,
    instructions: str | None = None,
) -> Prompt:
    """Build the prompt that asks for all three scores of several texts.

    texts: the chunks; the id of the first is the prompt's mark and 1, and so on.
    heuristics: rules that the critic checks.
    instructions: text about relevance to use instead of ours; the prompt's version then ends in "custom".
    """
    data = [("rules", "\n".join(map("- {}".format, heuristics))), ("question", question)]
    task = f"{instructions or _SCALE}\n{_BATCH_TASK}"
    return make_prompt(_version("batch", instructions), task, texts, data, SCORES_SCHEMA)


def single_relevance_prompt(
    question: str,
    text: str,
    stage: RelevanceStage,
    *,
    earlier: Mapping[RelevanceStage, float] | None = None,
    heuristics: Sequence[str] = RELEVANCE_HEURISTICS,
    instructions: str | None = None,
) -> Prompt:
    """Build the prompt that asks for the score of one stage, as in the paper; see also `relevance_prompt`.

    earlier: the scores of earlier stages.
    """
    scores = "\n".join(f"{name}: {score:g}" for name, score in (earlier or {}).items())
    rules = "\n".join(map("- {}".format, heuristics)) if stage == "critic" else ""
    data = [("rules", rules), ("question", question), ("scores so far", scores)]
    task = f"{instructions or _SCALE}\n{_STAGE_TASK[stage]} {_ONE_SCORE}"
    return make_prompt(_version(stage, instructions), task, [text], data, SCORE_SCHEMA)


def threshold_prompt(question: str, scores: Sequence[float]) -> Prompt:
    """Build the prompt that asks for the lowest score of a chunk to keep, from those of all chunks."""
    ranked = ", ".join(f"{score:g}" for score in sorted(scores, reverse=True))
    data = [("question", question), ("scores", ranked)]
    return make_prompt(_version("threshold"), f"{_THRESHOLD_TASK} {_ONE_SCORE}", [], data, SCORE_SCHEMA)


def _version(kind: str, instructions: str | None = None) -> str:
    return f"{RELEVANCE_VERSION}/{kind}{'/custom' if instructions else ''}"
