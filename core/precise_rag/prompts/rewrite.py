"""The prompt for a search query in place of a question (ChunkRAG, query rewriting)."""

from precise_rag.prompts.prompt import Fence, Prompt
from precise_rag.types import Message

REWRITE_VERSION = "rewrite/1"

_TASK = (
    "You rewrite a question into one query for a search over documents. Keep its meaning, its names and "
    "its numbers; spell out abbreviations you are sure of, replace pronouns by what they stand for where "
    "the question says it, drop small talk, and add no facts. Reply with the query alone, on one line."
)


def rewrite_prompt(question: str, *, instructions: str | None = None, mark: str | None = None) -> Prompt:
    """Build the prompt that asks to rewrite a question as a search query.

    instructions: text to use instead of `rewrite_instructions()`; the prompt's version then ends in
    "custom".
    mark: see `Fence`.
    """
    fence = Fence(mark)
    return Prompt(
        f"{REWRITE_VERSION}/custom" if instructions else REWRITE_VERSION,
        (
            Message("system", f"{instructions or _TASK}\n\n{fence.rule}"),
            Message("user", fence.block("question", question)),
        ),
    )


def rewrite_instructions() -> str:
    """Return the default instructions."""
    return _TASK
