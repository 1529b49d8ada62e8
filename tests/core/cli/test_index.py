import json
import re
import shutil
from unittest.mock import Mock

from safetensors.numpy import load_file, save_file

from precise_rag._data import packaged_text
from precise_rag.cli import demo, main, serve
from precise_rag.encoders import DEFAULT_ENCODER
from precise_rag.encoders.local import MINILM, packaged_encoder
from precise_rag.errors import IndexWriteError
from support.chat_server import ChatServer, says


def test_indexing_again_changes_nothing_and_reports_empty_documents(folder, precise):
    code, out, err = precise("index", folder / "docs", "--out", folder / "index", "--json")
    summary = json.loads(out)
    assert code == 0
    assert (summary["documents"], summary["empty_documents"]) == (2, ["empty.md"])
    assert "empty.md: the document is empty" in err


def test_pruning_removes_what_is_gone_but_not_what_cannot_be_read(tmp_path, precise):
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    for name in ("lamp.txt", "road.txt", "draft.log"):
        (docs / name).write_text(f"A page of the handbook. This is about the {name}.")
    assert main(["index", str(docs), "--out", str(index), "--prune"]) == 0
    (docs / "road.txt").unlink()
    (docs / "a_road.txt").write_bytes(b"a\0b")  # the name of the other is a part of its name
    _, out, err = precise("index", docs, "--out", index, "--json", "--exclude", "*.log", "--exclude", "a_*")
    assert (json.loads(out)["documents"], json.loads(out)["removed_documents"]) == (3, [])
    assert "2 of the index's documents, such as draft.log, are not in" in err
    assert "name all its folders, or use --prune if they are gone" in err
    lamp = (docs / "lamp.txt").read_text()
    (docs / "lamp.txt").write_bytes(b"a\0b")
    code, out, err = precise("index", docs, "--out", index, "--json", "--prune")
    assert (code, json.loads(out)["removed_documents"]) == (1, ["road.txt"])
    assert "lamp.txt: looks like a binary file" in json.loads(out)["unreadable"][1]
    (docs / "a_road.txt").unlink()
    assert "such as lamp.txt, may be in what could not be read; so they stay" in err
    (docs / "lamp.txt").write_text(lamp.upper())
    code, out, err = precise("index", docs, "--out", index, "--json", "--prune", "--exclude", "*.log")
    assert (code, json.loads(out)["removed_documents"]) == (0, ["draft.log"])
    assert "removed draft.log" in err
    assert "1 of the index's documents, such as lamp.txt, had another text before" in err
    _, out, _ = precise("ask", index, "What is the road about?", "--json")
    assert {candidate["doc_id"] for candidate in json.loads(out)["candidates"]} == {"lamp.txt"}


def test_what_is_pruned_or_replaced_leaves_the_files(tmp_path, precise, monkeypatch):
    """Also where its block would stay as it is; and what is removed is named when it is."""
    monkeypatch.setattr("precise_rag.index.table.SMALL", 1)
    docs, index = tmp_path, tmp_path.with_name("pruned")
    for name in ("Tansy", "Sorrel", "Yarrow", *range(9)):
        (docs / f"{name}.txt").write_text(f"The plant is called {name}.")
    assert precise("index", docs, "--out", index)[0] == 0
    (docs / "Sorrel.txt").write_text("The plant has no name.")
    for further in ((), ("--prune",)):  # which finds nothing to remove
        assert precise("index", docs, "--out", index, *further)[0] == 0
    assert b"called Sorrel" not in b"".join(file.read_bytes() for file in index.iterdir())
    (docs / "Tansy.txt").unlink()
    with monkeypatch.context() as full:
        full.setattr("precise_rag.index.index.write_index", Mock(side_effect=IndexWriteError("disk full")))
        err = precise("index", docs, "--out", index, "--prune")[2]
    assert ("disk full" in err, "removed" in err) == (True, False)
    assert "removed Tansy.txt" in precise("index", docs, "--out", index, "--prune")[2]
    kept = b"".join(file.read_bytes() for file in index.iterdir())
    assert [name in kept for name in (b"Tansy", b"called Sorrel", b"called Yarrow")] == [False, False, True]


def test_an_index_of_another_encoder_is_refused_as_it_was_and_asked_with_it(folder, tmp_path, precise):
    model = tmp_path / "other-model"
    shutil.copytree(packaged_encoder(MINILM), model)
    weights = load_file(model / "model.safetensors")
    save_file({name: -tensor for name, tensor in weights.items()}, model / "model.safetensors")
    before = sorted(file.name for file in (folder / "index").rglob("*"))
    code, _, err = precise("index", folder / "docs", "--out", folder / "index", "--encoder", model)
    assert code == 1
    assert "was built with encoder 'multilingual-e5-small-6'" in err
    assert sorted(file.name for file in (folder / "index").rglob("*")) == before
    own = tmp_path / "index"
    assert precise("index", folder / "docs", "--out", own, "--encoder", model)[0] == 0
    code, _, err = precise("ask", own, "Who keeps the lamp?")
    assert (code, "--encoder" in err) == (1, True)
    code, _, err = precise("ask", own, "Who keeps the lamp?", "--encoder", MINILM)
    assert (code, f"give that one, '{model}', or" in err) == (1, True)
    code, out, _ = precise("ask", own, "Who keeps the lamp?", "--encoder", model)
    assert (code, "Ilse Brandt keeps it." in out) == (0, True)


def test_an_index_in_a_database_is_made_updated_and_asked(folder, precise, new_location):
    location = new_location()
    for _ in range(2):
        code, out, err = precise("index", folder / "docs", "--out", location)
        assert code == 0, err
        assert "2 documents, 3 sentences" in out
    code, out, err = precise("ask", location, "Who keeps the lamp?")
    assert code == 0, err
    assert "Ilse Brandt" in out
    code, out, err = precise("ask", location, "Who keeps the lamp?", "--filter", "source=nowhere")
    assert "Ilse Brandt" not in out


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
    code, _, err = precise("ask", folder / "index", "Who?", "--trace", folder / "index" / "trace.html")
    assert (code, "name a file elsewhere" in err) == (1, True)
    (folder / "manifest.json").write_text("{}")  # of something else
    code, _, _ = precise("ask", folder / "index", "Who?", "--trace", folder / "trace.html")
    assert (code, (folder / "trace.html").exists()) == (0, True)


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
    code, out, _ = precise("demo", tmp_path, "--question", "Who keeps the lamp?")
    assert code == 0
    assert re.search(r"\[1\] lamp\.txt\n +0\.\d\d  The lamp.*\n +0\.\d\d  Ilse Brandt", out)
    sent, stock = re.findall(r"(?m)^ +Who keeps the lamp\? +(\d+) +(\d+)$", out)[0]
    assert 0 < int(sent) <= int(stock)


def test_the_default_documents_are_pages_of_the_language_reference():
    assert sum("finally" in text and len(text) < demo._LONGEST_PAGE for text in demo.topics.values()) > 2


def test_the_help_names_the_defaults_that_there_are():
    text = packaged_text("cli/commands.toml")
    assert f"the best {demo._TOP_K} chunks of {demo._CHUNK_TOKENS} tokens" in text
    assert f"encoder of the sentences (default: {DEFAULT_ENCODER})" in text
    assert f"http://{serve._HOST}:PORT/mcp" in text
    assert f"port of --http (default: {serve._PORT})" in text
