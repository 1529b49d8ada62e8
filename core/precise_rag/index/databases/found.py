"""Sentences as they are read back from a database: checked, and joined to the text that they are of."""

from collections.abc import Sequence
from typing import Any

from precise_rag.index.databases.checked import DamagedRowError, json_object, texts, whole_numbers
from precise_rag.index.databases.values import FoundSentence
from precise_rag.tokens import most_tokens
from precise_rag.types import Span


def as_found(
    doc_id: Any,
    place: Any,
    start: Any,
    end: Any,
    n_tokens: Any,
    passage_start: Any,
    passage_end: Any,
    text: Any,
    above: Any,
    metadata: Any,
) -> FoundSentence:
    """The row with the values of these columns, see `checked`. metadata: as JSON."""
    passage, about = Span(passage_start, passage_end), json_object("metadata", metadata)
    return checked(FoundSentence(doc_id, place, start, end, n_tokens, passage, text, above, about))


def checked(row: FoundSentence) -> FoundSentence:
    """Return a row as it was read. Raises DamagedRowError if its values are not those of a sentence."""
    for name in ("doc_id", "text", "above"):
        texts(name, [getattr(row, name)])
    for name in ("place", "start", "end", "n_tokens"):
        whole_numbers(name, [getattr(row, name)])
    whole_numbers("passage", row.passage)
    if not row.start <= row.end <= row.start + len(row.text):
        raise DamagedRowError("end", f"holds {row.end} for {len(row.text)} characters from {row.start} on")
    if not row.passage.start <= row.start or not row.end <= row.passage.end:
        raise DamagedRowError("passage", f"holds {row.passage}, which the sentence is not in")
    if row.n_tokens > most_tokens(row.start + len(row.text)):
        raise DamagedRowError("n_tokens", f"holds {row.n_tokens} for {len(row.text)} characters")
    return row


def consecutive(rows: Sequence[FoundSentence]) -> Sequence[FoundSentence]:
    """Return rows of a document. Raises DamagedRowError unless each is the sentence after the one before."""
    for place, row in enumerate(rows):
        before = rows[max(place - 1, 0)]
        if row.place != rows[0].place + place or (place and row.start != before.start + len(before.text)):
            raise DamagedRowError("text", f"does not lead from sentence {before.place} to {row.place}")
    return rows


def joined(rows: Sequence[FoundSentence]) -> FoundSentence:
    """The rows of a passage as one."""
    n_tokens = sum(row.n_tokens for row in rows)
    return rows[0]._replace(end=rows[-1].end, n_tokens=n_tokens, text="".join(row.text for row in rows))


def passage_of(sentence: FoundSentence, rows: Sequence[FoundSentence]) -> FoundSentence:
    """The passage of a sentence as one row. rows: its sentences. Raises DamagedRowError if one is missing."""
    if not rows or (rows[0].start, rows[-1].end) != sentence.passage:
        raise DamagedRowError("passage", f"holds {sentence.passage}, where other sentences are")
    return joined(consecutive(rows))
