"""The errors that this library raises.

Each also derives from a built-in error. A message states what was given, what was expected and what to do.
It never holds a key or a password.
"""

from precise_rag.redaction import redacted


class PreciseRagError(Exception):
    """Base class of all errors that precise-rag raises. Keys and passwords are removed from its message."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redacted(arg) if isinstance(arg, str) else arg for arg in args))


class InputError(PreciseRagError, ValueError):
    """A text, file, option or score is not valid."""


class ScoreScaleError(InputError):
    """The method cannot use scores on this scale."""


class EmptyIndexError(InputError):
    """The index holds nothing to search."""


class MissingExtra(PreciseRagError, ImportError):
    """An optional dependency is not installed. The message names the pip command that installs it."""


class ModelError(PreciseRagError, OSError):
    """A model cannot be found or read, its checksum is wrong, or it returns something other than vectors."""


class IndexFormatError(PreciseRagError, OSError):
    """A saved index cannot be read by this version or with this encoder."""


class IndexWriteError(PreciseRagError, OSError):
    """An index cannot be saved; the folder keeps the index it had."""


class IndexLockedError(IndexWriteError):
    """Another process or thread is writing the index."""


class IndexChangedError(IndexWriteError):
    """The folder holds another index than the one that was loaded."""


class DatabaseError(PreciseRagError, OSError):
    """A database cannot be reached, or cannot do what it is asked for."""


class LLMError(PreciseRagError, RuntimeError):
    """A language model call returned no usable reply.

    input_tokens, output_tokens: tokens that the call used all the same; 0 if no reply arrived.
    """

    input_tokens: int = 0
    output_tokens: int = 0


class LLMConnectionError(LLMError):
    """The server cannot be reached, or its reply stalled."""


class LLMAuthenticationError(LLMError):
    """The server rejected the key (status 401 or 403)."""


class LLMRateLimitError(LLMError):
    """The server answered with status 429 (too many requests), after all retries that it allows."""


class LLMServerError(LLMError):
    """The server answered with a status from 500 to 599, after all retries."""


class ContextLengthError(LLMError):
    """The prompt is longer than the model accepts."""


class ContentFilterError(LLMError):
    """The server's content filter refused the prompt or the reply."""


class LLMResponseError(LLMError):
    """The server's reply is not a chat completion."""


class EmptyReplyError(LLMResponseError):
    """The reply has no text."""


class BudgetExceeded(LLMError):
    """The next call would exceed the budget of calls, tokens, seconds or money."""
