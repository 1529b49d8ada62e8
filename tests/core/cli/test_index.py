import json
import shutil

from safetensors.numpy import load_file, save_file

from precise_rag.cli import main
from precise_rag.encoders.local import packaged_minilm


def test_indexing_again_changes_nothing_and_reports_empty_documents(folder, precise):
    code, out, err = precise("index", folder / "docs", "--out", folder / "index", "--json")
    summary = json.loads(out)
    assert code == 0
    assert (summary["documents"], summary["empty_documents"]) == (2, ["empty.md"])
    assert "empty.md: the document is empty" in err


def test_pruning_removes_what_is_gone_and_says_so_if_everything_can_be_read(tmp_path, precise):
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    for name in ("lamp.txt", "road.txt", "draft.log"):
        (docs / name).write_text(f"A page of the handbook. This is about the {name}.")
    assert main(["index", str(docs), "--out", str(index), "--prune"]) == 0
    (docs / "road.txt").unlink()
    _, out, err = precise("index", docs, "--out", index, "--json", "--exclude", "*.log")
    assert (json.loads(out)["documents"], json.loads(out)["removed_documents"]) == (3, [])
    assert "2 of the index's documents, such as draft.log, are not in" in err
    assert "use --prune" in err
    (docs / "bad.txt").write_bytes(b"a\0b")
    code, out, err = precise("index", docs, "--out", index, "--json", "--prune")
    assert (code, json.loads(out)["removed_documents"]) == (1, [])
    assert "bad.txt: looks like a binary file" in json.loads(out)["unreadable"][0]
    assert "may be in what could not be read; so they stay" in err
    (docs / "bad.txt").unlink()
    code, out, err = precise("index", docs, "--out", index, "--json", "--prune", "--exclude", "*.log")
    assert (code, json.loads(out)["removed_documents"]) == (0, ["draft.log", "road.txt"])
    assert "removed road.txt" in err
    _, out, _ = precise("ask", index, "What is the road about?", "--json")
    assert {candidate["doc_id"] for candidate in json.loads(out)["candidates"]} == {"lamp.txt"}


def test_an_index_of_another_encoder_is_refused_as_it_was_and_asked_with_that_encoder(
    folder, tmp_path, precise
):
    model = tmp_path / "other-model"
    shutil.copytree(packaged_minilm(), model)
    weights = load_file(model / "model.safetensors")
    save_file({name: -tensor for name, tensor in weights.items()}, model / "model.safetensors")
    before = sorted(file.name for file in (folder / "index").rglob("*"))
    code, _, err = precise("index", folder / "docs", "--out", folder / "index", "--encoder", model)
    assert code == 1
    assert "was built with encoder 'all-MiniLM-L6-v2'" in err
    assert sorted(file.name for file in (folder / "index").rglob("*")) == before
    own = tmp_path / "index"
    assert precise("index", folder / "docs", "--out", own, "--encoder", model)[0] == 0
    code, _, err = precise("ask", own, "Who keeps the lamp?")
    assert (code, "--encoder" in err) == (1, True)
    code, out, _ = precise("ask", own, "Who keeps the lamp?", "--encoder", model)
    assert (code, "Ilse Brandt keeps it." in out) == (0, True)


def test_a_new_index_that_cannot_be_made_leaves_no_folder(folder, tmp_path, precise):
    for option in ("--passages", "--encoder"):
        code, _, err = precise("index", folder / "docs", "--out", tmp_path / "new", option, "./bananas")
        assert (code, "bananas" in err) == (1, True)
        assert list(tmp_path.iterdir()) == []


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
