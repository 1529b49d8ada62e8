"""Prompts for a question in other words: a search query (ChunkRAG), and a question that stands alone."""

from collections.abc import Iterable

from precise_rag.prompts.prompt import Prompt, Shown, make_prompt
from precise_rag.types import Message

REWRITE_VERSION = "rewrite/2"
STANDALONE_VERSION = "standalone/2"

_REWRITE = (
    "Rewrite the question as one query for a search over documents. Keep its meaning, its names and its "
    "numbers; spell out abbreviations you are sure of, drop small talk, and add no facts. Reply with the "
    "query alone, on one line."
)
_STANDALONE = (
    "Write the question so that it can be understood without the messages before it: put in the names and "
    "facts that it refers to, and change nothing else. Do not answer it. Reply with the question alone, on "
    "one line."
)


def rewrite_prompt(question: str, *, instructions: str | None = None) -> Prompt:
    """Build the prompt that asks to rewrite a question as a search query.

    instructions: text to use instead of ours; the prompt's version then ends in "custom".
    """
    version = f"{REWRITE_VERSION}/custom" if instructions else REWRITE_VERSION
    return make_prompt(version, instructions or _REWRITE, [], [("question", question)])


def standalone_prompt(
    question: str, history: Iterable[Message], *, instructions: str | None = None
) -> Prompt:
    """Build the prompt that asks for a question that can be understood without the conversation before it.

    question: the question that follows the conversation.
    history: the messages of the conversation, the oldest first.
    instructions: text to use instead of ours; the prompt's version then ends in "custom".
    """
    turns = [Shown(message.content, message.role) for message in history]
    version = f"{STANDALONE_VERSION}/custom" if instructions else STANDALONE_VERSION
    return make_prompt(version, instructions or _STANDALONE, turns, [("question", question)])
