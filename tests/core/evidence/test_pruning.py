import json
import re
from typing import Any

import pytest

from precise_rag import prune
from precise_rag.errors import InputError
from precise_rag.tokens import estimate_tokens
from support.tool_results import KINDS, LOG, PAGE, RECORDS


@pytest.mark.parametrize("max_tokens", [200, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_what_answers_is_kept_within_the_tokens(kind: str, max_tokens: int) -> None:
    text, question, answer = KINDS[kind]
    pruned = prune(text, question, max_tokens, reranker="packaged")
    assert answer in pruned.text
    assert pruned.n_tokens == estimate_tokens(pruned.text) <= max_tokens
    assert pruned.n_tokens_before == estimate_tokens(text)


def test_excerpts_and_marks_give_the_whole_text_back() -> None:
    pruned = prune(PAGE, "When is __exit__ called?", 200, reranker="packaged")
    assert pruned.excerpts
    assert all(PAGE[one.start : one.end] == one.text for one in pruned.excerpts)
    holes = [tuple(map(int, hole)) for hole in re.findall(r"\[… (\d+)-(\d+)\]", pruned.text)]
    places = sorted([*holes, *((one.start, one.end) for one in pruned.excerpts)])
    assert "".join(PAGE[start:end] for start, end in places).split() == PAGE.split()


def test_a_text_that_fits_is_whole_and_one_without_a_sentence_that_fits_leaves_its_mark() -> None:
    assert prune("The lamp is lit.", "When?") == ("The lamp is lit.", (), 5, 5)
    assert prune("", "When?").text == ""
    text = "word " * 2_000
    assert prune(text, "Which word?", 40, reranker="packaged").text == f"[… 0-{len(text)}]"


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
    whole = re.sub(r'"\[… (\d+)-(\d+)\]"', lambda mark: text[int(mark[1]) : int(mark[2])], pruned.text)
    assert whole == text


@pytest.mark.parametrize("value", [{"url": "https://example.org", "content": PAGE}, [{"text": PAGE}], [PAGE]])
def test_a_page_in_json_is_cut_like_a_page(value: object) -> None:
    pruned = prune(json.dumps(value), "When is __exit__ called?", 200, reranker="packaged")
    assert "__exit__" in pruned.text
    assert pruned.n_tokens <= 200
    assert len(pruned.excerpts) > 1


def test_of_lines_that_differ_in_numbers_those_with_the_number_asked_for_are_found() -> None:
    pruned = prune(LOG, "What did worker 4 do with request 263?", 100, reranker="packaged")
    assert "handled request 263" in pruned.text


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000 + "]" * 5_000,
        '{"a": ' * 60 + json.dumps(RECORDS) + "}" * 60,
        '["\\ud800", "' + "word " * 2_000 + '"]',
        '{"a": "' + "\\u00e9 \\ud83d\\ude00 is fine. " * 400 + '"}',
        '{"a": 1, "a": ' + json.dumps(RECORDS) + "}",
        json.dumps(RECORDS)[:-5],
        "\n".join([*map(json.dumps, RECORDS), "no JSON"]),
        "[" + "1" * 5_000 + "]",
    ],
)
def test_strange_json_is_cut_too(text: str) -> None:
    pruned = prune(text, "Which item was discontinued?", 100, reranker="packaged")
    assert pruned.n_tokens <= 100
    assert all(text[one.start : one.end] == one.text for one in pruned.excerpts)


def test_other_arguments_are_refused() -> None:
    for wrong, message in (
        ((b"x", "Who?"), "text must be a string"),
        (("x", " "), "the query must not be blank"),
        (("x", "Who?", 31), "max_tokens must be"),
        (("x", "Who?", 40.5), "max_tokens must be"),
    ):
        with pytest.raises(InputError, match=message):
            prune(*wrong)  # type: ignore[arg-type]
