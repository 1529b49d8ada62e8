"""The `precise` command, run as users run it: files in, lines and exit codes out."""

import json
import shutil
import sys

import pytest
from safetensors.numpy import load_file, save_file

from precise_rag import Candidate, GradientSelector
from precise_rag.cli import main
from precise_rag.cli.output import print_selection
from precise_rag.encoders.packaged import packaged_minilm
from support.chat_server import ChatServer, fails, says

LAMP = "The lamp is lit at dusk. Ilse Brandt keeps it.\n\nThe road to the pass is closed in winter."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Documents, and an index made by the command itself."""
    folder = tmp_path_factory.mktemp("cli")
    docs = folder / "docs"
    docs.mkdir()
    (docs / "lamp.txt").write_text(LAMP)
    (docs / "empty.md").touch()
    assert main(["index", str(docs), "--out", str(folder / "index")]) == 0
    return folder


def run(capsys, *args):
    """Exit code, standard output and standard error of one command."""
    capsys.readouterr()
    code = main([str(arg) for arg in args])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_segment_prints_chunks_that_tile_the_file(folder, capsys):
    code, out, _ = run(capsys, "segment", folder / "docs" / "lamp.txt", "--json")
    chunks = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert "".join(chunk["text"] for chunk in chunks) == LAMP
    assert all(LAMP[chunk["start"] : chunk["end"]] == chunk["text"] for chunk in chunks)


def test_ask_names_each_candidate_its_score_and_the_reason(folder, capsys):
    code, out, _ = run(capsys, "ask", folder / "index", "Who keeps the lamp?", "--json")
    answer = json.loads(out)
    best = answer["candidates"][0]
    assert code == 0
    assert answer["kind"] == "context"
    assert "Ilse Brandt keeps it." in best["text"]
    assert LAMP[best["start"] : best["end"]] == best["text"]
    assert best["kept"]
    assert best["reason"]
    assert answer["tokens"] == sum(c["n_tokens"] for c in answer["candidates"] if c["kept"])


def test_ask_for_people_marks_the_context_as_such(folder, capsys):
    code, out, _ = run(capsys, "ask", folder / "index", "Who keeps the lamp?")
    assert code == 0
    assert "Context (no language model is configured):" in out


def test_indexing_again_changes_nothing_and_reports_empty_documents(folder, capsys):
    code, out, err = run(capsys, "index", folder / "docs", "--out", folder / "index", "--json")
    summary = json.loads(out)
    assert code == 0
    assert (summary["documents"], summary["empty_documents"]) == (2, ["empty.md"])
    assert "empty.md: the document is empty" in err


def test_pruning_removes_what_is_gone_and_says_so(tmp_path, capsys):
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    for name in ("lamp", "road"):
        (docs / f"{name}.txt").write_text(f"{LAMP} This is about the {name}.")
    (docs / "empty.md").touch()
    assert main(["index", str(docs), "--out", str(index), "--prune"]) == 0
    (docs / "road.txt").unlink()
    (docs / "empty.md").unlink()
    _, out, err = run(capsys, "index", docs, "--out", index, "--json")
    assert (json.loads(out)["documents"], json.loads(out)["removed_documents"]) == (3, [])
    assert "2 of the index's documents, such as empty.md" in err
    assert "--prune" in err
    code, out, err = run(capsys, "index", docs, "--out", index, "--json", "--prune")
    assert code == 0
    assert json.loads(out)["removed_documents"] == ["empty.md", "road.txt"]
    assert "removed road.txt" in err
    _, out, _ = run(capsys, "ask", index, "What is the road about?", "--json")
    assert {candidate["doc_id"] for candidate in json.loads(out)["candidates"]} == {"lamp.txt"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["segment", "nowhere.txt"], "no such file or folder"),
        (["segment", "{folder}/docs/empty.md"], "the document is empty"),
        (["segment", "{folder}/binary.txt"], "binary"),
        (["segment", "{folder}/docs/lamp.txt", "--model", "no-such-model"], "no-such-model"),
        (["index", "{folder}/docs/empty.md", "--out", "{folder}/new"], "every document is empty"),
        (
            ["index", "{folder}/docs", "--out", "{folder}/new", "--encoder", "no/such-encoder"],
            "no/such-encoder",
        ),
        (["ask", "{folder}/nowhere", "Who?"], "no index"),
        (["ask", "{folder}/index", " "], "the query is empty"),
    ],
)
def test_bad_input_ends_in_one_line_and_leaves_no_index(folder, capsys, args, message):
    (folder / "binary.txt").write_bytes(b"\x00\x01")
    code, out, err = run(capsys, *(arg.format(folder=folder) for arg in args))
    assert (code, out) == (1, "")
    assert err.startswith("precise: ")
    assert err.count("\n") == 1
    assert message in err
    assert not (folder / "new").exists()


def test_a_damaged_index_and_one_of_another_version_are_refused(folder, tmp_path, capsys):
    other = tmp_path / "index"
    assert main(["index", str(folder / "docs"), "--out", str(other)]) == 0
    manifest = next(other.rglob("*.json"))
    record = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(record | {"version": 999}))
    code, _, err = run(capsys, "ask", other, "Who?")
    assert code == 1
    assert "999" in err
    manifest.write_text("{")
    code, _, err = run(capsys, "ask", other, "Who?")
    assert code == 1
    assert str(other) in err


def test_a_command_line_that_cannot_be_understood_exits_with_2(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["answer"])
    assert exit_.value.code == 2


def test_an_index_of_another_encoder_is_refused_and_stays_as_it_was(folder, tmp_path, capsys):
    model = tmp_path / "other-model"
    shutil.copytree(packaged_minilm(), model)
    weights = load_file(model / "model.safetensors")
    save_file({name: -tensor for name, tensor in weights.items()}, model / "model.safetensors")
    before = sorted(file.name for file in (folder / "index").rglob("*"))
    code, _, err = run(capsys, "index", folder / "docs", "--out", folder / "index", "--encoder", model)
    assert code == 1
    assert "was built with encoder 'all-MiniLM-L6-v2'" in err
    assert sorted(file.name for file in (folder / "index").rglob("*")) == before


def test_a_missing_extra_names_the_pip_command(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    code, _, err = run(capsys, "ask", folder / "index", "Who keeps the lamp?", "--llm", "some-model")
    assert code == 1
    assert "pip install 'precise-rag[openai]'" in err


def test_ask_answers_through_a_chat_server_and_writes_the_trace(folder, tmp_path, capsys):
    judgement = json.dumps({"score": 9, "adjustment": 0, "reason": "complete"})
    with ChatServer([says("Ilse Brandt keeps it [1]."), says(judgement)]) as server:
        model = ["--llm", "local-model", "--base-url", server.url]
        page = tmp_path / "trace.html"
        code, out, _ = run(
            capsys, "ask", folder / "index", "Who keeps the lamp?", *model, "--trace", page, "--json"
        )
    answer = json.loads(out)
    assert code == 0
    assert (answer["kind"], answer["answer"]) == ("generated", "Ilse Brandt keeps it [1].")
    assert answer["usage"] == {"calls": 2, "input_tokens": 22, "output_tokens": 14, "cost": None}
    assert "Ilse Brandt keeps it [1]." in page.read_text("utf-8")


def test_a_dry_run_estimates_and_asks_no_model(folder, tmp_path, capsys):
    prices = tmp_path / "prices.toml"
    prices.write_text("[local-model]\ninput = 1000000.0\noutput = 0.0\n")
    with ChatServer([says("never sent")]) as server:
        model = ["--llm", "local-model", "--base-url", server.url, "--prices", prices]
        code, out, _ = run(
            capsys, "ask", folder / "index", "Who keeps the lamp?", *model, "--dry-run", "--json"
        )
    estimate = json.loads(out)
    assert code == 0
    assert server.requests == []
    assert 1 <= estimate["least"]["calls"] <= estimate["most"]["calls"]
    assert estimate["least"]["cost"] == estimate["least"]["input_tokens"]


def test_a_server_that_refuses_ends_in_one_line(folder, capsys):
    with ChatServer([fails(401, "bad key")]) as server:
        model = ["--llm", "local-model", "--base-url", server.url]
        code, out, err = run(capsys, "ask", folder / "index", "Who keeps the lamp?", *model)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1


def test_the_demo_runs_on_documents_of_ones_own(folder, capsys):
    args = ["demo", folder / "docs" / "lamp.txt", "--question", "Who keeps the lamp?"]
    code, out, _ = run(capsys, *args, "--json")
    record = json.loads(out)
    assert code == 0
    assert "Ilse Brandt" in record["candidates"][0]["text"]
    assert record["tokens"] == sum(c["n_tokens"] for c in record["candidates"] if c["kept"])
    code, out, _ = run(capsys, *args)
    assert code == 0
    assert f"sent: {record['tokens']} tokens" in out


def test_where_the_cut_fell_is_said_once(capsys):
    selection = GradientSelector(min_k=1).select(
        Candidate("d", 10 * i, 10 * i + 5, f"text {i}", score, "probability")
        for i, score in enumerate([0.9, 0.8, 0.1, 0.05, 0.04, 0.03])
    )
    print_selection(selection, dropped=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "cut after" in line] == [
        "  ── cut after rank 2: sharp drop: 0.1 is not above 0.3 × 0.8"
    ]
    assert lines[-1].strip() == "… and 2 more dropped, 0 repetitions left out"
