"""A trace as one HTML page: the question, what was sent, and what was kept and dropped by which score.

The page is made from the plain record of `Trace.to_dict`, so a stored record can become a page, too. It has
no scripts and loads no other files. Control characters in texts are written as escapes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, TemplateError

from precise_rag.errors import InputError
from precise_rag.redaction import visible

Record = Mapping[str, Any]
_LONGEST_TEXT, _LONGEST_LIST = 20_000, 500
"""Characters of one text, and entries of one list, that a page shows."""


def trace_page(record: Record) -> str:
    """Return the page of a record made by `Trace.to_dict`. Raises InputError for any other record.

    A record without texts becomes a page without texts. Long texts and lists are cut, as its end says.
    """
    try:
        return visible(_template().render(record=record).strip())
    except (ArithmeticError, LookupError, RecursionError, TemplateError, TypeError, ValueError) as error:
        raise InputError(
            f"the record must be one that Trace.to_dict made ({type(error).__name__}: {error})"
        ) from error


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("precise_rag", "trace"),
        autoescape=True,
        finalize=_shortened,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "by_document": lambda excerpts: groupby(excerpts, itemgetter("doc_id")),
        "counted": _counted,
        "number": lambda value, form: format(float(value), form),  # NaN is a text in a record
        "pairs": lambda settings: ", ".join(f"{name} {value}" for name, value in settings.items()),
        "parts": _parts,
        "shown": lambda items: items[:_LONGEST_LIST],
        "strength": lambda rank: f"{25 + 75 / (1 + max(float(rank) - 1, 0) / 5):.0f}",
    }
    return environment.get_template("page.html")


def _shortened(value: object) -> object:
    """A text as the page shows it; markup, which macros return, as it is."""
    if type(value) is str and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}…"
    return value


def _counted(items: Iterable[Any], noun: str = "") -> str:
    n = len([*items])
    return f"{n:,} {noun}{'' if n == 1 else 's'}" if noun else f"{n:,}"


def _parts(excerpt: Record) -> Iterator[tuple[str, Record | None]]:
    """The parts of the text of an excerpt, each with the sentence that it is, if it was selected."""
    text, at = excerpt["text"].rstrip(), 0
    sentences: Sequence[Record] = excerpt["sentences"][:_LONGEST_LIST]
    for sentence in sorted(sentences, key=lambda one: float(one["start"])):
        start, end = (max(at, min(sentence[side] - excerpt["start"], len(text))) for side in ("start", "end"))
        yield from ((text[at:start], None), (text[start:end], sentence))
        at = end
    yield text[at:], None
