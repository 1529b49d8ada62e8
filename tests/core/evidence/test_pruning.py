import json
import re
from typing import Any

import pytest

from precise_rag import prune
from precise_rag.errors import InputError
from precise_rag.tokens import estimate_tokens
from support.tool_results import KINDS, LOG, PAGE, RECORDS


def whole(text: str, pruned: str) -> str:
    """A cut text with what its marks stand for; in JSON they are texts in a list."""
    return re.sub(r'"?\[… (\d+)-(\d+)\]"?', lambda mark: text[int(mark[1]) : int(mark[2])], pruned)


@pytest.mark.parametrize("max_tokens", [200, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_what_answers_is_kept_within_the_tokens_and_marks_stand_for_the_rest(
    kind: str, max_tokens: int
) -> None:
    text, question, answer = KINDS[kind]
    pruned = prune(text, question, max_tokens, reranker="packaged")
    assert answer in pruned.text
    assert pruned.n_tokens == estimate_tokens(pruned.text) <= max_tokens
    assert pruned.n_tokens_before == estimate_tokens(text)
    assert pruned.excerpts
    assert all(text[one.start : one.end] == one.text for one in pruned.excerpts)
    assert whole(text, pruned.text).split() == text.split()


@pytest.mark.parametrize(
    "value",
    [
        {"next": None, "results": RECORDS},
        {"a": {"b": [], "c": RECORDS, "d": ["x ] \\ [", {"e": [1, 2]}] * 9}, "f": 1.10},
        [["x", i, {"note": "é" * (i % 7)}] for i in range(400)],
    ],
    ids=range(3),
)
@pytest.mark.parametrize("layout", [{}, {"indent": 2, "ensure_ascii": False}, {"separators": (",", ":")}])
def test_json_is_cut_between_the_elements_of_its_lists(value: object, layout: dict[str, Any]) -> None:
    text = json.dumps(value, **layout)
    pruned = prune(text, "Which item was discontinued?", 200, reranker="packaged")
    assert type(json.loads(pruned.text)) is type(value)
    assert pruned.n_tokens == estimate_tokens(pruned.text) <= 200
    assert pruned.excerpts
    assert all(text[one.start : one.end] == one.text and one.text in pruned.text for one in pruned.excerpts)
    assert whole(text, pruned.text) == text


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        (json.dumps({"url": "https://example.org", "content": PAGE}), "When is __exit__ called?", "__exit__"),
        (json.dumps([{"text": PAGE}]), "When is __exit__ called?", "__exit__"),
        (LOG, "What did worker 4 do with request 263?", "handled request 263"),
        ("word " * 2_000, "Which word?", "[… 0-10000]"),
        ("[" * 5_000 + "]" * 5_000, "Which?", "["),
        ('{"a": ' * 60 + json.dumps(RECORDS) + "}" * 60, "Which item was discontinued?", "discontinued"),
        ('["\\ud800", "' + "word " * 2_000 + '"]', "Which word?", ""),
        ('{"a": "' + "\\u00e9 \\ud83d\\ude00 is fine. " * 400 + '"}', "What is fine?", "fine"),
        ('{"a": 1, "a": ' + json.dumps(RECORDS) + "}", "Which item was discontinued?", "discontinued"),
        (json.dumps(RECORDS)[:-5], "Which item was discontinued?", "discontinued"),
        ("\n".join([*map(json.dumps, RECORDS), "no JSON"]), "Which item was discontinued?", "discontinued"),
        ("[" + "1" * 5_000 + "]", "Which number?", ""),
    ],
)
def test_a_page_within_json_and_strange_texts_are_cut_too(text: str, question: str, answer: str) -> None:
    pruned = prune(text, question, 150, reranker="packaged")
    assert answer in pruned.text
    assert pruned.n_tokens <= 150
    assert all(text[one.start : one.end] == one.text for one in pruned.excerpts)


def test_a_text_that_fits_is_whole_and_other_arguments_are_refused() -> None:
    assert prune("The lamp is lit.", "When?") == ("The lamp is lit.", (), 5, 5)
    assert prune("", "When?").text == ""
    for wrong, message in (
        ((b"x", "Who?"), "text must be a string"),
        (("x", " "), "the query must not be blank"),
        (("x", "Who?", 31), "max_tokens must be"),
        (("x", "Who?", 40.5), "max_tokens must be"),
    ):
        with pytest.raises(InputError, match=message):
            prune(*wrong)  # type: ignore[arg-type]
