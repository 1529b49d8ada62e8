"""Every error this library raises on purpose.

    PreciseRagError
    ├── InputError (ValueError)             a text, file, option or score that cannot be used
    │   ├── ScoreScaleError                 scores on a scale the caller's method cannot use
    │   └── EmptyIndexError                 a search on an index that holds nothing
    ├── MissingExtra (ImportError)          an optional dependency is not installed
    ├── ModelError (OSError)                a model that cannot be found, read or trusted
    ├── IndexFormatError (OSError)          a saved index that cannot be read with this version or encoder
    └── LLMError (RuntimeError)             a language model call that gave no usable completion
        ├── LLMConnectionError              no connection, or the stream stalled
        ├── LLMAuthenticationError          401 or 403
        ├── LLMRateLimitError               429 after all retries
        ├── LLMServerError                  5xx after all retries
        ├── ContextLengthError              the prompt is longer than the model accepts
        ├── LLMResponseError                the server answered with something that is no completion
        └── BudgetExceeded                  the next call would pass the caller's budget

Messages say what was given, what was expected and what to do.
"""


class PreciseRagError(Exception):
    """Base of all errors raised on purpose by precise-rag."""


class InputError(PreciseRagError, ValueError):
    """A text, file, option or score that cannot be used."""


class ScoreScaleError(InputError):
    """Scores on a scale that the method asked for cannot use."""


class EmptyIndexError(InputError):
    """A search on an index that holds nothing."""


class MissingExtra(PreciseRagError, ImportError):
    """An optional dependency is not installed."""


class ModelError(PreciseRagError, OSError):
    """A model that cannot be found, read or trusted."""


class IndexFormatError(PreciseRagError, OSError):
    """A saved index that this version, or this encoder, cannot read."""


class LLMError(PreciseRagError, RuntimeError):
    """A language model call that gave no usable completion."""


class LLMConnectionError(LLMError):
    """The server could not be reached, or its answer stalled."""


class LLMAuthenticationError(LLMError):
    """The server refused the key (401 or 403)."""


class LLMRateLimitError(LLMError):
    """The server still answered 429 after every retry."""


class LLMServerError(LLMError):
    """The server still answered 5xx after every retry."""


class ContextLengthError(LLMError):
    """The prompt is longer than the model accepts."""


class LLMResponseError(LLMError):
    """The server answered with something that is no completion."""


class BudgetExceeded(LLMError):
    """The next call would pass the caller's budget of calls, tokens, seconds or money."""
