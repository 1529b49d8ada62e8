"""Prompts for a question in other words: a search query (ChunkRAG), and a question that stands alone."""

from collections.abc import Iterable

from precise_rag.prompts.prompt import Fence, Prompt
from precise_rag.types import Message

REWRITE_VERSION = "rewrite/1"
STANDALONE_VERSION = "standalone/1"

_REWRITE = (
    "You rewrite a question into one query for a search over documents. Keep its meaning, its names and "
    "its numbers; spell out abbreviations you are sure of, replace pronouns by what they stand for where "
    "the question says it, drop small talk, and add no facts. Reply with the query alone, on one line."
)
_STANDALONE = (
    "You are shown a conversation and the question that follows it. Write the question so that a reader "
    "who has not seen the conversation understands it: put in the names and facts that it refers to, and "
    "change nothing else. If it can be understood as it is, repeat it. Do not answer it. Reply with the "
    "question alone, on one line."
)


def rewrite_prompt(question: str, *, instructions: str | None = None, mark: str | None = None) -> Prompt:
    """Build the prompt that asks to rewrite a question as a search query.

    instructions: text to use instead of ours; the prompt's version then ends in "custom".
    mark: see `Fence`.
    """
    fence = Fence(mark)
    version = f"{REWRITE_VERSION}/custom" if instructions else REWRITE_VERSION
    return fence.prompt(version, instructions or _REWRITE, [fence.block("question", question)])


def standalone_prompt(
    question: str, history: Iterable[Message], *, instructions: str | None = None, mark: str | None = None
) -> Prompt:
    """Build the prompt that asks for a question that can be understood without the conversation before it.

    question: the question that follows the conversation.
    history: the messages of the conversation, the oldest first.
    instructions: text to use instead of ours; the prompt's version then ends in "custom".
    mark: see `Fence`.
    """
    fence = Fence(mark)
    turns = [fence.block(message.role, message.content) for message in history]
    version = f"{STANDALONE_VERSION}/custom" if instructions else STANDALONE_VERSION
    return fence.prompt(version, instructions or _STANDALONE, [*turns, fence.block("question", question)])
