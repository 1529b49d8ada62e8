import re
import threading

import pytest

from precise_rag import ToolResultPruner
from precise_rag.evidence.tool_results import question_of
from precise_rag.tokens import estimate_tokens
from support.tool_results import LOG

QUESTION = "Which disk is full?"


def reference_in(result: str) -> str:
    (reference,) = re.findall(r"reference='([\w-]+)'", result)
    return reference


def test_a_long_result_is_cut_and_the_rest_can_be_read_or_asked() -> None:
    text = f"{LOG}\nThe night shift ends at six."
    pruner = ToolResultPruner(300, reranker="packaged")
    cut = pruner.prune(text, QUESTION)
    assert "/dev/sdb1 is full" in cut
    assert "night shift" not in cut
    assert estimate_tokens(cut) <= 300 < estimate_tokens(text)
    reference = reference_in(cut)
    assert "ends at six" in pruner.read(reference, question="When does the night shift end?")
    place: int | None = 0
    parts = []
    while place is not None:
        line, _, part = pruner.read(reference, place).partition("\n")
        assert estimate_tokens(part) <= 300
        parts.append(part)
        more = re.search(r"start=(\d+)", line)
        place = int(more[1]) if more else None
    assert "".join(parts) == text
    for start in (-1, len(text)):
        assert "Error: start must be within 0 and" in pruner.read(reference, start)


class _Broken:
    name, score_scale = "broken", "probability"

    def score(self, query: str, texts: object) -> object:
        raise OSError("the model is gone")


def test_a_short_result_one_without_a_question_and_one_that_cannot_be_cut_stay_as_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pruner = ToolResultPruner(300, reranker="packaged")
    for result, question in (("  short \n", QUESTION), ("", QUESTION), (LOG, " "), (LOG, "")):
        assert pruner.prune(result, question) is result
    assert ToolResultPruner(100, reranker=_Broken()).prune(LOG, QUESTION) is LOG
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


@pytest.mark.parametrize(
    ("arguments", "message", "question"),
    [
        ({"query": "disk full", "n": 3}, "Why?", "disk full\nWhy?"),
        ({"query": "Why?"}, "Why?", "Why?"),
        ({"url": "https://example.org"}, "Why?", "Why?"),
        ({"path": "a/worker.log", "n": 3}, "", "a/worker.log"),
        ({"n": 3}, " ", ""),
    ],
)
def test_a_call_is_for_what_it_asks_and_what_the_user_asked(
    arguments: dict[str, object], message: str, question: str
) -> None:
    assert question_of(arguments, message) == question
