"""What is asked of a pipeline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from precise_rag.checks import check_number, items_of
from precise_rag.errors import InputError
from precise_rag.excerpts import Form
from precise_rag.rewriting import read_history
from precise_rag.trace import Trace
from precise_rag.types import Candidate, FloatArray, check_query


class SearchArguments(TypedDict, total=False):
    """The further arguments of `PreciseRAG.retrieve`; see there."""

    history: Iterable[Any]
    filter: Any
    vector: FloatArray | None
    candidates: Iterable[Candidate] | None
    trace: Trace | None
    max_tokens: int | None
    form: Form | None


class AnswerArguments(SearchArguments, total=False):
    """The further arguments of `PreciseRAG.answer`; see there."""

    options: Sequence[str]


@dataclass(frozen=True, slots=True)
class Request:
    """A question, with the arguments of `PreciseRAG.retrieve` and `PreciseRAG.answer`.

    Raises InputError for a blank text, a history that cannot be read, and options that are blank or repeated.
    """

    text: str
    history: Iterable[Any] = ()
    filter: Any = None
    vector: FloatArray | None = None
    candidates: Iterable[Candidate] | None = None
    trace: Trace | None = None
    max_tokens: int | None = None
    form: Form | None = None
    options: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_query(self.text)
        check_number("max_tokens", self.max_tokens, least=1, whole=True, none="no limit")
        object.__setattr__(self, "history", read_history(self.history))
        options = tuple(items_of("options", self.options, str))
        if len({option.strip() for option in options} - {""}) < len(options):
            raise InputError(f"options must differ, and none may be blank, got {options!r}")
        object.__setattr__(self, "options", options)
