import json
import shutil

from safetensors.numpy import load_file, save_file

from precise_rag.cli import main
from precise_rag.encoders.packaged import packaged_minilm


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
