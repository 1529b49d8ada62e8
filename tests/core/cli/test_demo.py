import json
import re

from precise_rag.cli import demo


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
