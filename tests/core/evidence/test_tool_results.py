import json
import re
import threading
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag import ToolResultPruner, prune
from precise_rag.encoders.local import count_packaged_tokens
from precise_rag.errors import InputError
from precise_rag.evidence.tool_results import questions_of
from precise_rag.evidence.units import units_of
from precise_rag.types import Candidate, FloatArray
from support.documents import read_cases, read_document
from support.scored import Scored
from support.tool_results import KINDS, LOG, PAGE, RECORDS

QUESTION = "Which disk is full?"


def n_tokens(text: str) -> int:
    return int(count_packaged_tokens([text])[0])


def reference_in(result: str) -> str:
    (reference,) = re.findall(r"reference='([\w-]+)'", result)
    return reference


def test_a_long_result_is_cut_and_the_rest_can_be_read_or_asked() -> None:
    text = f"{LOG}\nThe night shift ends at six."
    pruner = ToolResultPruner(300, reranker="packaged")
    cut = pruner.prune(text, QUESTION)
    assert "/dev/sdb1 is full" in cut
    assert "night shift" not in cut
    assert n_tokens(cut) <= 300 < n_tokens(text)
    reference = reference_in(cut)
    long = "Ann: It is late.\n" * 200_000
    assert "ends at six" in pruner.read(reference, question=f"{long}When does the night shift end?")
    place: int | None = 0
    parts = []
    while place is not None:
        line, _, part = pruner.read(reference, place).partition("\n")
        assert n_tokens(part) <= 300
        parts.append(part)
        more = re.search(r"start=(\d+)", line)
        place = int(more[1]) if more else None
    assert "".join(parts) == text
    for start in (-1, len(text), "7"):
        assert "Error: start must be within 0 and" in pruner.read(reference, start)


def test_a_short_result_one_without_a_question_and_one_that_cannot_be_cut_stay_as_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def gone(text: str) -> float:
        raise OSError("the model is gone")

    pruner = ToolResultPruner(300, reranker="packaged")
    for result, question in (("  short \n", QUESTION), ("", QUESTION), (LOG, " "), (LOG, "")):
        assert pruner.prune(result, question) is result
    assert ToolResultPruner(100, reranker=Scored(gone)).prune(LOG, QUESTION) is LOG
    assert "passed on whole" in caplog.text


def test_what_is_kept_is_bounded_and_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    pruner = ToolResultPruner(100, reranker="packaged", max_results=2, keep_seconds=60)
    first, second, third = (reference_in(pruner.prune(f"{n} {LOG}", QUESTION)) for n in range(3))
    assert re.match(r"Error: no result is kept .* call the tool again", pruner.read(first))
    assert "0 to" in pruner.read(second)
    now[0] = 61
    assert "older than 1 minutes" in pruner.read(third)
    monkeypatch.setattr("precise_rag.evidence.tool_results._MOST_CHARACTERS", len(LOG) + 10)
    fourth, fifth = (reference_in(pruner.prune(LOG, QUESTION)) for _ in range(2))
    assert "no result is kept" in pruner.read(fourth)
    assert "0 to" in pruner.read(fifth)


@pytest.mark.slow
def test_threads_share_it_and_references_cannot_be_guessed() -> None:
    pruner, cut = ToolResultPruner(100, reranker="packaged", max_results=3), []
    threads = [threading.Thread(target=lambda: cut.append(pruner.prune(LOG, QUESTION))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    references = {reference_in(one) for one in cut}
    assert len(references) == 8
    assert all(len(reference) >= 12 for reference in references)
    assert sum("Error: no" not in pruner.read(reference) for reference in references) == 3


@pytest.mark.parametrize(("arguments", "said", "questions"), read_cases("evidence.json", "calls of tools"))
def test_a_call_is_for_what_it_asks_and_what_the_user_asked(
    arguments: dict[str, object], said: list[str], questions: list[str]
) -> None:
    assert [*questions_of(arguments, said)] == questions


@pytest.mark.parametrize("said", ["yes", "go ahead", "Please look it up.", "ja bitte", ""])
def test_what_is_no_question_to_a_result_gives_way_to_the_one_before(said: str) -> None:
    pruner = ToolResultPruner(120)
    assert "/dev/sdb1 is full" in pruner.prune(LOG, said, f"{QUESTION}\n{said}")
    assert "/dev/sdb1 is full" in pruner.prune(LOG, QUESTION, "Which worker handled request 250?")


def test_if_the_second_question_fails_the_result_is_cut_by_the_first() -> None:
    class OnlyYes(Scored):
        def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
            assert query == "yes"
            return super().score(query, candidates)

    reranker = OnlyYes(lambda text: 0.001)
    assert n_tokens(ToolResultPruner(120, reranker=reranker).prune(LOG, "yes", QUESTION)) <= 120


def check_marks(text: str, pruned: str) -> None:
    """Check that each mark stands where the text before it ends; in JSON marks are texts in a list."""
    parts = re.split(r'"?\[… (\d+)(?:: [^\n]*)?\]"?', pruned)
    for piece, start in zip(parts[::2], [*map(int, parts[1::2]), len(text)], strict=True):
        assert "".join(text[:start].split()).endswith("".join(piece.split()))


def uneven(text: str) -> int:
    """A measure that is neither additive nor monotone: whole texts often count more than their parts."""
    return len(text) // 4 + 3 * (len(text) % 5 == 0) + text.count("aa") + text.count("\n\n")


ODD = ["The disk is full", ". ", "\n", "\n\n", " | ", '{"a": [', "灯", "x\x1cy", "\u2028", "\ud800"]
HOSTILE = st.lists(st.sampled_from([*ODD, "aa" * 40]) | st.text(max_size=20), max_size=120).map("".join)


@settings(max_examples=40)
@given(
    text=HOSTILE | st.lists(HOSTILE, min_size=2, max_size=6).map(json.dumps),
    max_tokens=st.integers(32, 120),
    measure=st.sampled_from([None, uneven, lambda texts: [len(t.encode("utf-8", "replace")) for t in texts]]),
)
def test_the_limit_always_holds(text: str, max_tokens: int, measure: Any) -> None:
    count = uneven if measure is uneven else lambda given: int((measure or count_packaged_tokens)([given])[0])
    pruned = prune(text, QUESTION, max_tokens, reranker="packaged", count_tokens=measure)
    assert pruned.n_tokens == count(pruned.text) <= max_tokens
    assert pruned.n_tokens_before == count(text)
    pruner = ToolResultPruner(max_tokens + 200, reranker="packaged", count_tokens=measure)
    cut = pruner.prune(f"{text}\n{LOG}", QUESTION)
    assert count(cut) <= max_tokens + 200
    assert count(pruner.read(reference_in(cut), 7)) <= max_tokens + 200


@pytest.mark.parametrize("max_tokens", [200, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_what_answers_is_kept_within_tokens_and_marks_stand_for_the_rest(kind: str, max_tokens: int) -> None:
    text, question, answer = KINDS[kind]
    pruned = prune(text, question, max_tokens, reranker="packaged")
    assert answer in pruned.text
    assert pruned.n_tokens == n_tokens(pruned.text) <= max_tokens
    assert pruned.n_tokens_before == n_tokens(text)
    assert pruned.excerpts
    assert all(text[one.start : one.end] == one.text for one in pruned.excerpts)
    check_marks(text, pruned.text)


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
    assert pruned.n_tokens == n_tokens(pruned.text) <= 200
    assert pruned.excerpts
    assert all(text[one.start : one.end] == one.text and one.text in pruned.text for one in pruned.excerpts)
    check_marks(text, pruned.text)


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        (json.dumps({"url": "https://example.org", "content": PAGE}), "When is __exit__ called?", "__exit__"),
        (json.dumps([{"text": PAGE}]), "When is __exit__ called?", "__exit__"),
        (LOG, "What did worker 4 do with request 263?", "handled request 263"),
        ("word " * 2_000, "Which word?", "word word\n[… 24]"),
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


LATER = "\n\n".join(f"Go on with step {i} and wait." for i in range(15))
SERVICES = {
    f"{kind}{what}": {"id": n, "name": f"{kind}-{n}", "opts": {"hosts": [f"h{n}.lan"], "timeout_s": 20 + n}}
    for n, (kind, what) in enumerate(product(("order", "user", "mail"), ("Queue", "Cache", "Store")))
}
MAIL_CACHE = "What is the timeout of the mailCache?"
FERRY, ROWS = read_cases("evidence.json", "a long sentence and a table")


@pytest.mark.parametrize(
    ("text", "question", "answers", "others"),
    [
        (json.dumps({"services": SERVICES}), MAIL_CACHE, ("mailCache", "27"), "26 28"),
        (json.dumps({"services": SERVICES}, indent=2), MAIL_CACHE, ("mailCache", "27"), "26 28"),
        (
            json.dumps({"server": SERVICES["mailCache"]}),
            "What is the server's timeout?",
            ("server", "27"),
            "",
        ),
        (f"{LATER}\n\n{FERRY}\n\n{LATER}", "How much will the ferry cost from July?", ("3.20",), "step"),
        (f"<details>\n{ROWS}\n\n</details>\n\n{LATER}", "How many requests has newt?", ("5,900",), ""),
    ],
    ids=["a record", "lines of one", "one object", "a sentence", "a table"],
)
def test_of_the_likeliest_that_does_not_fit_the_parts_that_answer_are_kept(
    text: str, question: str, answers: tuple[str, ...], others: str
) -> None:
    for max_tokens in range(48, 72, 4):
        pruned = prune(text, question, max_tokens, reranker="packaged")
        assert pruned.n_tokens <= max_tokens
        assert all(text[one.start : one.end] == one.text for one in pruned.excerpts)
        assert all(answer in pruned.text for answer in answers), pruned.text
        assert not any(other in pruned.text for other in others.split()), pruned.text


def test_a_row_that_does_not_fit_with_the_head_of_its_table_has_less_of_it() -> None:
    rows = [["Train", *(f"Station No. {n}" for n in range(15))], ["-"] * 16]
    rows += [[str(n), *(f"{n % 24:02}:{minute:02}" for minute in range(15))] for n in range(100, 130)]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    for max_tokens, head in ((128, "Train | Station No. 0"), (256, "Station No. 14]")):
        shown = prune(table, "When does train 117 leave?", max_tokens).text
        assert "| 117 |" in shown
        assert head in shown


def test_a_sentence_that_does_not_fit_beside_likelier_ones_is_not_cut() -> None:
    boat = "The {} boat of the ferry house leaves at {},\nfrom the quay by the mill,\nand comes back at {}."
    colours = ("blue", "green", "red", "white", "black")
    boats = " ".join(boat.format(one, n, n + 7) for n, one in enumerate(colours, 2))
    for max_tokens in range(128, 160, 4):
        shown = prune(f"{LATER}\n\n{boats}\n\n{LATER}", "When does a boat leave?", max_tokens).text
        assert shown.count("leaves at") == shown.count("comes back") > 1, shown


def test_no_line_is_left_out_between_those_that_are_sent_of_a_wrapped_sentence() -> None:
    text, question = read_cases("evidence.json", "a wrapped sentence")
    assert [prune(text, question, most).text.count("[… ") for most in (48, 68, 76)] == [2, 2, 2]


def test_the_budget_is_used_while_anything_likely_is_left() -> None:
    assert 160 < prune(read_document("agreement.txt"), "When does the agreement end?", 256).n_tokens <= 256


def test_the_record_of_a_name_is_kept_whole_before_lines_of_its_namesakes() -> None:
    card = "BEGIN:VCARD\nFN:{0}. {1}\nADR;TYPE=WORK:;;Room B{2}\nTEL;TYPE=WORK:{2}\nEND:VCARD"
    names = [*product("ABCDEFGHIJKN", ("Holm", "Reyes", "Falk", "Lind"))]
    text = "\n".join(card.format(*name, 400 + number) for number, name in enumerate(names))
    kept = prune(text, "In which room is N. Reyes?", 128, reranker="packaged").text
    assert card.format("N", "Reyes", 445) in kept


def test_the_entry_of_a_name_in_the_question_is_kept_to_its_end() -> None:
    entry = (
        "     hang-lamp [-a] [-c colour]\n             Put one up.\n\n             It is lit at dusk. {}\n\n"
    )
    whole = entry.format("Nothing else is hung with it. The -a option takes the oldest three.")
    before = [
        f"Lamp {n} may hang where the keeper can see it, as does a lamp of town {n}." for n in range(20)
    ]
    after = [f"If the lamp does not hang, -{n} says what to do with lamp {n}." for n in "bcdefghijk"]
    text = "LAMPS\n\n" + "\n\n".join(before) + f"\n\n{whole}" + "\n\n".join(after)
    assert whole.strip() in prune(text, "What does -a do in the keeper's hang-lamp?", 128).text


@pytest.mark.parametrize("row", read_cases("evidence.json", "rows of two lines"))
def test_a_table_as_long_as_the_limit_is_cut_between_its_rows(row: str) -> None:
    rows = [row.format(name, f"dim {name}") for name in "ABCDEFGH"]
    rule, head = ("=========== ==================\n", "Key         Meaning\n")
    table = f"{rule}{head}{rule}{''.join(rows)}{rule}"
    if row[0] == "|":
        table = "+---+---+\n| Key | Meaning |\n+===+===+\n" + "".join(rows)
    units = [table[slice(*span)] for span in units_of(table, 50, count_packaged_tokens)]
    assert [unit for unit in units[1:-1] if "stops" in unit] == rows[:-1]


def test_sentences_and_rows_of_html_are_not_cut_at_their_tags() -> None:
    row = "  <tr><td><p>integer</p></td>\n<td>{}</td>\n</tr>\n"
    name = '<code><span class="pre">init-helpers</span> <span class="pre">(1.50)</span></code>'
    units = [
        f"<p>{'It is old. ' * 20}</p>\n",
        f"<p>Add a dependency on {name}, which introduced the option <b>a</b> <b>b</b>.</p>\n",
    ]
    text = units[0] + units[1] + "<table>\n" + row.format("x " * 250) + row.format(7) + "</table>\n"
    spans = [text[start:end] for start, end in units_of(text, 256, count_packaged_tokens)]
    assert units[1] in spans
    assert all(unit.count("integer") == unit.count("</tr>") for unit in spans), spans


def test_a_text_that_fits_is_whole_and_other_arguments_are_refused() -> None:
    assert prune("The lamp is lit.", "When?") == ("The lamp is lit.", (), 5, 5)
    assert prune("", "When?").text == ""
    assert "is blue" in prune(f"# {'Of pumps ' * 40}\n\n" + "Pump B is blue.\n\n" * 99, "Is B blue?", 64).text
    for wrong, message in (
        ((b"x", "Who?"), "text must be a string"),
        (("x", " "), "the query must not be blank"),
        (("x", "Who?", 31), "max_tokens must be"),
        (("x", "Who?", 40.5), "max_tokens must be"),
    ):
        with pytest.raises(InputError, match=message):
            prune(*wrong)  # type: ignore[arg-type]
