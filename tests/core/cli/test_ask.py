import json
import re

from precise_rag.cli import demo
from support.chat_server import ChatServer, says


def test_each_candidate_has_its_place_score_and_reason(folder, precise):
    code, out, _ = precise("ask", folder / "index", "Who keeps the lamp?", "--json")
    answer = json.loads(out)
    best = answer["candidates"][0]
    assert code == 0
    assert answer["kind"] == "context"
    assert "Ilse Brandt keeps it." in best["text"]
    text = (folder / "docs" / best["doc_id"]).read_text()
    assert text[best["start"] : best["end"]] == best["text"]
    assert best["kept"]
    assert best["reason"]
    assert answer["tokens"] == sum(c["n_tokens"] for c in answer["candidates"] if c["kept"])
    code, out, _ = precise("ask", folder / "index", "Who keeps the lamp?")
    assert code == 0
    assert "\nContext:\n\n[1] lamp.txt\n" in out
    assert "For an answer, name one with --llm (its key: OPENAI_API_KEY;" in out.splitlines()[-1]


def test_a_chat_server_answers_and_the_trace_is_written(folder, tmp_path, precise):
    judgement = json.dumps({"score": 9, "adjustment": 0, "reason": "complete"})
    with ChatServer([says("Ilse Brandt keeps it [1]."), says(judgement)]) as server:
        model = ["--llm", "local-model", "--base-url", server.url]
        page = tmp_path / "trace.html"
        code, out, _ = precise(
            "ask", folder / "index", "Who keeps the lamp?", *model, "--trace", page, "--json"
        )
    answer = json.loads(out)
    assert code == 0
    assert (answer["kind"], answer["answer"]) == ("generated", "Ilse Brandt keeps it [1].")
    assert answer["usage"] == {"calls": 2, "input_tokens": 22, "output_tokens": 14, "cost": None}
    assert "Ilse Brandt keeps it [1]." in page.read_text("utf-8")


def test_max_tokens_counts_what_is_around_a_passage_too(folder, precise):
    """A sentence of a few tokens fits by itself, but not with the marks around it."""
    ask = ("ask", folder / "index", "Who keeps the lamp?", "--json", "--max-tokens")
    none, some = (json.loads(precise(*ask, str(limit))[1]) for limit in (8, 60))
    assert none["sources"] == []
    assert "(max_tokens)" in none["candidates"][0]["reason"]
    assert some["sources"]
    assert some["tokens"] <= 60


def test_the_demo_runs_on_given_documents(tmp_path, precise):
    (tmp_path / "lamp.txt").write_text("The lamp is lit at dusk. Ilse Brandt keeps it.")
    (tmp_path / "otter.txt").write_text("Otters sleep by the river. It floods in March.")
    args = ["demo", tmp_path, "--question", "Who keeps the lamp?"]
    code, out, _ = precise(*args, "--json")
    record = json.loads(out)
    assert code == 0
    assert "Ilse Brandt" in record["candidates"][0]["text"]
    assert record["tokens"] == sum(c["n_tokens"] for c in record["candidates"] if c["kept"])
    assert record["stock_tokens"] > 0
    code, out, _ = precise(*args)
    assert code == 0
    assert re.search(r"\[1\] lamp\.txt\n +0\.\d\d  ", out)
    tokens = rf"Who keeps the lamp\? +{record['tokens']} +{record['stock_tokens']}$"
    assert re.search(tokens, out, re.MULTILINE)


def test_the_default_documents_are_pages_of_the_language_reference():
    assert sum("finally" in document.text for document in demo._language_reference()) > 2
