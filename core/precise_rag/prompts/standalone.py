"""The prompt for a question that can be understood without the conversation it was asked in."""

from collections.abc import Iterable

from precise_rag.prompts.prompt import Fence, Prompt
from precise_rag.types import Message

STANDALONE_VERSION = "standalone/1"

_TASK = (
    "You are shown a conversation and the question that follows it. Write the question so that a reader "
    "who has not seen the conversation understands it: put in the names and facts that it refers to, and "
    "change nothing else. If it can be understood as it is, repeat it. Do not answer it. Reply with the "
    "question alone, on one line."
)


def standalone_prompt(
    question: str, history: Iterable[Message], *, instructions: str | None = None, mark: str | None = None
) -> Prompt:
    """Build the prompt that asks for a question that stands alone.

    question: the question that follows the conversation.
    history: the messages of the conversation, the oldest first.
    instructions: text to use instead of `standalone_instructions()`; the prompt's version then ends in
    "custom".
    mark: see `Fence`.
    """
    fence = Fence(mark)
    turns = [fence.block(message.role, message.content) for message in history]
    return Prompt(
        f"{STANDALONE_VERSION}/custom" if instructions else STANDALONE_VERSION,
        (
            Message("system", f"{instructions or _TASK}\n\n{fence.rule}"),
            Message("user", "\n\n".join((*turns, fence.block("question", question)))),
        ),
    )


def standalone_instructions() -> str:
    """Return the default instructions."""
    return _TASK
