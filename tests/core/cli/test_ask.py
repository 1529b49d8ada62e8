import json
import shutil
import sys

from precise_rag.encoders.local import packaged_minilm
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


def test_rows_of_a_table_are_printed_below_its_head(tmp_path, precise):
    rows = "".join(f"| M{size} | {5 * size} mm | {3 * size} Nm |\n" for size in range(4, 64))
    (tmp_path / "docs").mkdir()
    table = f"# Bolts\n\n| Bolt | Length | Torque |\n|---|---|---|\n{rows}\nOrder them early.\n"
    (tmp_path / "docs" / "bolts.md").write_text(table)
    precise("index", tmp_path / "docs", "--out", tmp_path / "index")
    code, out, _ = precise("ask", tmp_path / "index", "How long is bolt M41?")
    assert code == 0
    assert "bolts.md: Bolts › Bolt | Length | Torque\n| M" in out
    assert "| M41 | 205 mm | 123 Nm |" in out


def test_a_missing_extra_names_the_pip_command(folder, precise, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    code, _, err = precise("ask", folder / "index", "Who keeps the lamp?", "--llm", "some-model")
    assert code == 1
    assert "pip install 'precise-rag[openai]'" in err


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


def test_an_index_of_another_encoder_is_asked_with_that_encoder(folder, tmp_path, precise):
    own = tmp_path / "my-model"
    shutil.copytree(packaged_minilm(), own)
    weights = own / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x00")  # another model by a hair
    assert precise("index", folder / "docs", "--out", tmp_path / "index", "--encoder", own)[0] == 0
    code, _, err = precise("ask", tmp_path / "index", "Who keeps the lamp?")
    assert code == 1
    assert "--encoder" in err
    code, out, _ = precise("ask", tmp_path / "index", "Who keeps the lamp?", "--encoder", own)
    assert code == 0
    assert "Ilse Brandt keeps it." in out


def test_max_tokens_counts_what_is_around_a_passage_too(folder, precise):
    """A sentence of a few tokens fits by itself, but not with the marks around it."""
    ask = ("ask", folder / "index", "Who keeps the lamp?", "--json", "--max-tokens")
    none, some = (json.loads(precise(*ask, str(limit))[1]) for limit in (8, 60))
    assert none["sources"] == []
    assert "(max_tokens)" in none["candidates"][0]["reason"]
    assert some["sources"]
    assert some["tokens"] <= 60
