"""Random files and replies: reading raises nothing but our errors."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from precise_rag.candidate_filters.relevance_scoring import parse_score, parse_scores
from precise_rag.documents import read_documents
from precise_rag.errors import InputError
from precise_rag.feedback import parse_judgement
from precise_rag.prompts import cited_numbers
from precise_rag.sentences import split_sentences

LINES = ('{"id": "a", "text": "One. Two."}', '{"sections": [{}]}', '{"text": "x", "n": [1]}')
REPLIES = (
    '{"score": 9, "adjustment": -1, "reason": "good"}',
    '{"scores": [{"id": "1", "relevance": 0.5}]}',
    "Score: 7/10\nAdjustment: +1",
    '[{"1": 0.25}, {"2": 1}]',
    "0.85",
    "Ada [1].",
)
ODD = (*'{}[]"\\:,-\0é\n ', "9" * 400, "9" * 5_000, "NaN", "1e999", "null", "\\ud83d")


def mutated(texts: tuple[str, ...], choose: random.Random) -> str:
    """One of the texts with up to five pieces replaced by odd ones."""
    text = choose.choice(texts)
    for _ in range(choose.randrange(6)):
        start = choose.randrange(len(text) + 1)
        odd = choose.choice(ODD) * choose.choice((1, 1, 1, 200))
        text = text[:start] + odd + text[start + choose.randrange(4) :]
    return text


@pytest.mark.parametrize("text", ["One. Z\u2028. Two.", "\ud83d Z\u2028.?!?!\u200d天地玄黃。"])
def test_a_text_that_makes_sentencex_panic_is_split(text: str) -> None:
    assert "".join(text[start:end] for start, end in split_sentences(text)) == text


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_files_of_random_bytes_are_read_or_refused(name: str, tmp_path: Path) -> None:
    choose = random.Random(2)
    file = tmp_path / name
    for number in range(100):
        data = "\n".join(mutated(LINES, choose) for _ in range(3)).encode("utf-8", "surrogatepass")
        file.write_bytes(data[: choose.randrange(len(data))] + choose.randbytes(3) if number % 2 else data)
        errors: list[InputError] = []
        for document in read_documents(file, on_error=errors.append):
            json.dumps(dict(document.metadata))
            assert document.id
        assert all(str(file) in str(error) for error in errors)


@pytest.mark.parametrize(
    "parse",
    [parse_judgement, parse_score, lambda reply: parse_scores(reply, ["1", "2"]), cited_numbers],
    ids=["judge", "score", "scores", "citations"],
)
def test_any_reply_is_parsed_or_found_unusable(parse: Callable[[str], object]) -> None:
    choose = random.Random(3)
    for _ in range(300):
        parse(mutated(REPLIES, choose))
