"""Reading: the words that answer a question in what is sent, without a language model."""

from precise_rag.reading.reader import AnswerReader, answer_reader, read_answer
from precise_rag.reading.unanswered import (
    NOTHING_SENT,
    Unanswered,
    check_unanswered,
    read_selection,
    reading_note,
)

__all__ = [
    "NOTHING_SENT",
    "AnswerReader",
    "Unanswered",
    "answer_reader",
    "check_unanswered",
    "read_answer",
    "read_selection",
    "reading_note",
]
