"""Prompts for the relevance of chunks to a question (ChunkRAG, section 3 and appendix A).

Each chunk has three scores: a base score, a reflection on it and a critic's score.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from precise_rag.prompts.prompt import INSTRUCTIONS, Prompt, make_prompt, object_schema

RelevanceStage = Literal["base", "reflection", "critic"]
RELEVANCE_STAGES: tuple[RelevanceStage, ...] = get_args(RelevanceStage)
_RELEVANCE_VERSION = "relevance/2"
_TOLD = INSTRUCTIONS["relevance"]
RELEVANCE_HEURISTICS: tuple[str, ...] = (*_TOLD["rules"],)
"""The default rules that the critic checks."""
_SCORES = object_schema({"id": {"type": "string"}, **{one: {"type": "number"} for one in RELEVANCE_STAGES}})
_SCORES_SCHEMA = object_schema({"scores": {"type": "array", "items": _SCORES}}, title="relevance")
_SCORE_SCHEMA = object_schema({"score": {"type": "number"}}, title="score")


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
    task = f"{instructions or _TOLD['scale']}\n{_TOLD['all']}"
    return make_prompt(_version("batch", instructions), task, texts, data, _SCORES_SCHEMA)


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
    task = f"{instructions or _TOLD['scale']}\n{_TOLD[stage]} {_TOLD['one_score']}"
    return make_prompt(_version(stage, instructions), task, [text], data, _SCORE_SCHEMA)


def threshold_prompt(question: str, scores: Sequence[float]) -> Prompt:
    """Build the prompt that asks for the lowest score of a chunk to keep, from those of all chunks."""
    ranked = ", ".join(f"{score:g}" for score in sorted(scores, reverse=True))
    data, task = [("question", question), ("scores", ranked)], f"{_TOLD['threshold']} {_TOLD['one_score']}"
    return make_prompt(_version("threshold"), task, [], data, _SCORE_SCHEMA)


def _version(kind: str, instructions: str | None = None) -> str:
    return f"{_RELEVANCE_VERSION}/{kind}{'/custom' if instructions else ''}"
