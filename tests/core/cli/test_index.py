import functools
import io
import json
import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from precise_rag import read_documents
from precise_rag.cli import main
from precise_rag.cli.pruning import proven_gone
from precise_rag.documents import FileReport
from precise_rag.encoders.packaged import packaged_minilm
from precise_rag.index import HybridIndex, load_index
from precise_rag.index.storage.manifest import has_index


def test_indexing_again_changes_nothing_and_reports_empty_documents(folder, precise):
    code, out, err = precise("index", folder / "docs", "--out", folder / "index", "--json")
    summary = json.loads(out)
    assert code == 0
    assert (summary["documents"], summary["empty_documents"]) == (2, ["empty.md"])
    assert "empty.md: the document is empty" in err


def test_pruning_removes_what_is_gone_and_says_so(tmp_path, precise):
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    for name in ("lamp", "road"):
        (docs / f"{name}.txt").write_text(f"A page of the handbook. This is about the {name}.")
    (docs / "empty.md").touch()
    assert main(["index", str(docs), "--out", str(index), "--prune"]) == 0
    (docs / "road.txt").unlink()
    (docs / "empty.md").unlink()
    _, out, err = precise("index", docs, "--out", index, "--json")
    assert (json.loads(out)["documents"], json.loads(out)["removed_documents"]) == (3, [])
    assert "2 of the index's documents, such as empty.md" in err
    assert "--prune" in err
    code, out, err = precise("index", docs, "--out", index, "--json", "--prune")
    assert code == 0
    assert json.loads(out)["removed_documents"] == ["empty.md", "road.txt"]
    assert "removed road.txt" in err
    _, out, _ = precise("ask", index, "What is the road about?", "--json")
    assert {candidate["doc_id"] for candidate in json.loads(out)["candidates"]} == {"lamp.txt"}


def test_a_damaged_index_and_one_of_another_version_are_refused(folder, tmp_path, precise):
    other = tmp_path / "index"
    assert main(["index", str(folder / "docs"), "--out", str(other)]) == 0
    manifest = next(other.rglob("*.json"))
    record = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(record | {"version": 999}))
    code, _, err = precise("ask", other, "Who?")
    assert code == 1
    assert "999" in err
    manifest.write_text("{")
    code, _, err = precise("ask", other, "Who?")
    assert code == 1
    assert str(other) in err


def test_an_index_of_another_encoder_is_refused_and_stays_as_it_was(folder, tmp_path, precise):
    model = tmp_path / "other-model"
    shutil.copytree(packaged_minilm(), model)
    weights = load_file(model / "model.safetensors")
    save_file({name: -tensor for name, tensor in weights.items()}, model / "model.safetensors")
    before = sorted(file.name for file in (folder / "index").rglob("*"))
    code, _, err = precise("index", folder / "docs", "--out", folder / "index", "--encoder", model)
    assert code == 1
    assert "was built with encoder 'all-MiniLM-L6-v2'" in err
    assert sorted(file.name for file in (folder / "index").rglob("*")) == before


def test_unchanged_files_are_not_opened_again(tmp_path, precise, monkeypatch):
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    for name in ("lamp", "road"):
        (docs / f"{name}.txt").write_text(f"A page of the handbook. This is about the {name}.")
    assert precise("index", docs, "--out", index)[0] == 0
    with monkeypatch.context() as patched:
        patched.setattr("precise_rag.documents.reading.read_bytes", None)
        patched.setattr("precise_rag.cli.index.load_encoder", None)
        code, out, err = precise("index", docs, "--out", index, "--json")
    assert (code, json.loads(out)["documents"], err) == (0, 2, "")
    (docs / "road.txt").write_text("The road is closed in winter, and the pass is, too.")
    (docs / "new.txt").write_text("Otters sleep by the river.")
    (docs / "lamp.txt").unlink()
    code, out, err = precise("index", docs, "--out", index, "--json", "--prune")
    assert (code, json.loads(out)["documents"]) == (0, 2)
    assert json.loads(out)["removed_documents"] == ["lamp.txt"]
    _, out, _ = precise("ask", index, "When is the road closed?", "--json")
    assert any("closed in winter" in candidate["text"] for candidate in json.loads(out)["candidates"])


def test_what_is_skipped_is_said_and_strict_indexes_nothing(tmp_path, precise):
    (tmp_path / "a.md").write_text("# Fares\n\nAdults pay 12 euros.")
    (tmp_path / "b.txt").write_bytes(b"a\0b")
    (tmp_path / "c.png").write_bytes(b"PNG")
    code, out, err = precise("index", tmp_path, "--out", tmp_path / "index", "--strict")
    assert (code, out) == (1, "")
    assert "with --strict nothing was indexed" in err
    assert not (tmp_path / "index").exists()
    code, out, err = precise("index", tmp_path, "--out", tmp_path / "index", "--json")
    assert code == 1
    assert [(Path(f["path"]).name, f["status"]) for f in json.loads(out)["files"]] == [
        ("a.md", "read"),
        ("b.txt", "failed"),
        ("c.png", "skipped"),
    ]
    assert "skipped 1, this kind is not read (.png)" in err
    assert "b.txt: looks like a binary file" in err


def test_standard_input_is_a_document(tmp_path, precise, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"The lamp is lit at dusk.")))
    code, out, _ = precise("index", "-", "--out", tmp_path / "index", "--json")
    assert (code, json.loads(out)["documents"]) == (0, 1)
    code, _, err = precise("index", "-", "--out", tmp_path / "index", "--watch")
    assert code == 1
    assert "cannot be watched" in err


def test_arguments_that_cannot_work_are_refused_before_any_reading(tmp_path, precise, monkeypatch):
    monkeypatch.setattr("precise_rag.cli.index.read_given", None)
    code, _, err = precise("index", tmp_path, "--out", tmp_path)
    assert (code, err.count("\n")) == (1, 1)
    assert "--out must be another folder" in err
    (tmp_path / "file").touch()
    code, _, err = precise("index", tmp_path, "--out", tmp_path / "file" / "index")
    assert (code, err.count("\n")) == (1, 1)
    assert "cannot be written" in err
    with pytest.raises(SystemExit, match="2"):
        precise("index", tmp_path, "--passages", "bananas")


def test_an_index_in_a_database_is_made_updated_and_asked(folder, precise, new_location):
    location = new_location()
    for _ in range(2):
        code, out, err = precise("index", folder / "docs", "--out", location)
        assert code == 0, err
        assert "2 documents, 2 sentences" in out
    code, out, err = precise("ask", location, "Who keeps the lamp?")
    assert code == 0, err
    assert "Ilse Brandt" in out
    code, out, err = precise("ask", location, "Who keeps the lamp?", "--filter", "source=nowhere")
    assert "Ilse Brandt" not in out


def test_records_of_an_earlier_version_get_their_new_ids(tmp_path, precise, monkeypatch):
    """Until then the file counts as unchanged, and its records would keep the ids of other files."""
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    (docs / "a.jsonl").write_text(json.dumps({"id": "policy.md", "text": "The lamp is lit at dusk."}))
    with monkeypatch.context() as patched:
        patched.setattr("precise_rag.cli.known_files._READING", 1)
        patched.setattr(
            "precise_rag.cli.given_documents.read_documents", functools.partial(read_documents, own_ids=True)
        )
        assert precise("index", docs, "--out", index)[0] == 0
    assert list(load_index(index).document_ids) == ["policy.md"]
    code, _, err = precise("index", docs, "--out", index)
    assert (code, "such as policy.md, are not in" in err) == (0, True)
    code, _, err = precise("index", docs, "--out", index, "--prune")
    assert (code, "removed policy.md" in err) == (0, True)
    assert list(load_index(index).document_ids) == ["a.jsonl#policy.md"]


def test_an_interrupted_run_keeps_what_is_done_and_the_next_goes_on(tmp_path, precise, monkeypatch):
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    for number in range(5):
        (docs / f"{number}.txt").write_text(f"Page {number} of the handbook. Otter {number} sleeps.")
    (docs / "empty.md").touch()
    added, add = [], HybridIndex.add
    monkeypatch.setattr("precise_rag.cli.index._CHARACTERS", 1)
    monkeypatch.setattr("precise_rag.cli.index._SECONDS", 0)

    def interrupted(self, documents, **options):
        documents = list(documents)
        if len(added) == 3:
            raise KeyboardInterrupt
        added.extend(document.id for document in documents)
        add(self, documents, **options)

    with monkeypatch.context() as patched:
        patched.setattr(HybridIndex, "add", interrupted)
        code, _, err = precise("index", docs, "--out", index)
    assert code == 130
    assert "2 of 6 documents are indexed" in err  # a line of the log
    assert f"3 of 6 documents are indexed and stay in {index}; the same command goes on" in err
    assert list(load_index(index).document_ids) == added == ["0.txt", "1.txt", "2.txt"]
    later = []

    def noted(self, documents, **options):
        later.extend(documents)
        add(self, documents, **options)

    with monkeypatch.context() as patched:
        patched.setattr(HybridIndex, "add", noted)
        code, _, err = precise("index", docs, "--out", index)
    assert code == 0
    assert "going on: 3 documents are in the index, 3 are left" in err
    assert [document.id for document in later] == ["3.txt", "4.txt", "empty.md"]
    assert len(load_index(index).document_ids) == 6
    assert "going on" not in precise("index", docs, "--out", index)[2]


def test_an_interruption_before_the_first_document_leaves_nothing(tmp_path, precise, monkeypatch):
    (tmp_path / "a.txt").write_text("The lamp is lit.")

    def interrupt(self, documents, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(HybridIndex, "add", interrupt)
    code, _, err = precise("index", tmp_path / "a.txt", "--out", tmp_path / "index")
    assert (code, "interrupted" in err) == (130, True)
    assert not has_index(tmp_path / "index")


def test_excluded_files_are_skipped_and_pruned(tmp_path, precise):
    docs, index = tmp_path / "docs", tmp_path / "index"
    (docs / "drafts").mkdir(parents=True)
    for name in ("a.txt", "b.log", "drafts/c.txt"):
        (docs / name).write_text(f"This is about {name}.")
    assert precise("index", docs, "--out", index)[0] == 0
    code, out, err = precise(
        "index", docs, "--out", index, "--exclude", "*.log", "--exclude", "drafts/", "--prune", "--json"
    )
    assert code == 0
    assert json.loads(out)["removed_documents"] == ["b.log", "drafts/c.txt"]
    assert "skipped 2, excluded" in err
    assert [d.id for d in read_documents(f"{docs}/**/*", exclude=["drafts"])] == ["a.txt", "b.log"]


def test_what_an_unreadable_file_may_hold_stays(tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("bad.txt", "read.jsonl"):
        (tmp_path / "docs" / name).touch()
    docs = tmp_path / "docs"
    reports = [FileReport(str(docs / "bad.txt"), "failed"), FileReport(str(docs / "read.jsonl"), "read")]
    gone = ["bad.txt", "read.jsonl#3", "lost.txt", "lost/deep.txt"]
    assert proven_gone(gone, [docs], reports, all_read=True) == gone
    assert proven_gone(gone, [docs], reports, all_read=False) == gone[1:]
    assert proven_gone(gone, [docs, tmp_path / "drive"], reports, all_read=False) == []
    several = [f"{docs.as_posix()}/{name}" for name in gone]
    (tmp_path / "other").mkdir()
    assert proven_gone(several, [docs, tmp_path / "other"], reports, all_read=False) == several[1:]


def test_a_wrong_option_prints_the_usage_of_its_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["index", "docs", "--prun", "--nonsense"])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert "usage: precise index" in err
    assert "unrecognized arguments: --nonsense" in err
