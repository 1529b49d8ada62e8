"""Saving touches nothing that is not an index's, and reads back what it wrote, exactly."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.cli import main
from precise_rag.errors import InputError
from precise_rag.index import DenseIndex, HybridIndex, load_index
from precise_rag.index.storage.lock import HOLDER_FILE, LOCK_FILE
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.saved_indexes import (
    DOCUMENTS,
    ENCODER,
    build,
    content,
)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path under a folder with its bytes; None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


OURS = "data-" + "0" * 32
FOREIGN = {
    "a folder named data-*": {"data-raw/thesis.csv": "mine"},
    "another manifest": {"manifest.json": '{"name": "my web app"}'},
    "a manifest that is not JSON": {"manifest.json": "name = my web app"},
    "a file named like a data folder": {OURS: "mine"},
    "a file in a data folder": {f"{OURS}/thesis.csv": "mine", f"{OURS}/spans.npy": "x"},
    "a folder in a data folder": {f"{OURS}/spans.npy/thesis.csv": "mine"},
    "notes": {"notes.txt": "mine"},
    "hidden": {".git/config": "mine"},
    "a folder named as the lock": {"precise-rag.lock/mine": "mine"},
}


@pytest.mark.parametrize("with_index", [False, True], ids=["alone", "beside an index"])
@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_with_other_files_is_not_touched(name: str, with_index: bool, tmp_path: Path) -> None:
    path = tmp_path / "p"
    if with_index:
        if name in ("a manifest that is not JSON", "a folder named as the lock"):
            pytest.skip("the index has these itself")
        build("dense").save(path)
    for file, text in FOREIGN[name].items():
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_text(text)
    before = tree(path)
    for attempt in (build("dense").save, lambda p: HybridIndex.lock(p).__enter__()):
        with pytest.raises(InputError, match=r"holds other files.*give an empty or new folder"):
            attempt(path)
        assert tree(path) == before


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "spans.npy").write_text("mine")
    for name in (OURS, "manifest.json", LOCK_FILE, HOLDER_FILE):
        path = tmp_path / f"with {name}"
        path.mkdir()
        (path / name).symlink_to(tmp_path / "mine")
        with pytest.raises(InputError, match="holds other files"):
            build("dense").save(path)
    assert (tmp_path / "mine" / "spans.npy").read_text() == "mine"


def test_what_interrupted_saves_left_is_cleared_and_a_damaged_index_replaced(tmp_path: Path) -> None:
    index = build("dense")
    left = tmp_path / OURS
    left.mkdir(parents=True)
    (left / "spans.npy").write_bytes(b"half")
    (left / "documents.jsonl").write_bytes(b"half")
    (tmp_path / ("data-" + "1" * 32)).mkdir()
    index.save(tmp_path)
    assert len(list(tmp_path.glob("data-*"))) == 1
    (tmp_path / "manifest.json").write_text("{")
    index.save(tmp_path)
    assert content(load_index(tmp_path, ENCODER)) == content(index)
    assert len(list(tmp_path.glob("data-*"))) == 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
any_text = st.text(st.characters(), max_size=30)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(any_text.filter(bool), any_text, st.dictionaries(any_text, values, max_size=3)), max_size=4
    )
)
def test_what_is_saved_is_what_is_loaded(
    tmp_path_factory: Any, records: list[tuple[str, str, dict[str, Any]]]
) -> None:
    path = tmp_path_factory.mktemp("index")
    documents = list({r[0]: Document(*r) for r in records}.values())
    index = DenseIndex.build(documents, HashEncoder())
    index.save(path)
    loaded = load_index(path, HashEncoder())
    for before, after in zip(documents, map(loaded.document, loaded.document_ids), strict=True):
        assert (after.id, after.text, after.metadata) == (before.id, before.text, before.metadata)


@pytest.mark.parametrize(
    "text",
    [
        "a \ud83d\ude00 b. The lamp is lit.",
        "\ud83d",
        "\ude00\ud83d",
        "line\u2028separator\x85\r\n",
        "\0",
        "e\u0301",
    ],
)
def test_offsets_stay_right_for_any_text(text: str, tmp_path: Path) -> None:
    """Two surrogates became one character on saving, and all offsets after them were wrong."""
    document = Document("d" + text, "First. " + text + " The lamp is lit.", {text: [text]})
    index = HybridIndex.build([document], ENCODER)
    index.save(tmp_path)
    loaded = load_index(tmp_path, ENCODER)
    assert loaded.document(document.id) == document
    for before, after in zip(index.search("lamp lit", 9), loaded.search("lamp lit", 9), strict=True):
        assert (after.id, after.text, after.metadata) == (before.id, before.text, before.metadata)
        assert after.text == document.text[after.start : after.end]


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({1: "a"}, "the key 1 is not a string"),
        ({"a": [{None: 1}]}, "the key None is not a string"),
        ({"a": (1, 2)}, "tuple is not a JSON type; give a list"),
        ({"a": {1, 2}}, "set is not a JSON type; give a list"),
        ({"a": np.float32(1)}, "float32 is not a JSON type"),
        ({"a": b"x"}, "bytes is not a JSON type"),
        ({"a": 10**5000}, "metadata cannot be saved"),
        ({"a": nested(100_000)}, "metadata cannot be saved"),
    ],
)
def test_metadata_that_json_would_change_are_refused(metadata: Any, message: str, tmp_path: Path) -> None:
    index = build("dense")
    index.save(tmp_path)
    index.add([Document("odd", "A text.", metadata)])
    with pytest.raises(
        InputError, match=f"document 'odd': metadata cannot be saved as JSON.*{message}|{message}"
    ):
        index.save(tmp_path)
    assert content(load_index(tmp_path, ENCODER)) == content(build("dense"))
    index.add([Document("odd", "A text.", {"a": float("inf"), "b": 2**70, "c": True})])
    index.save(tmp_path)
    assert load_index(tmp_path, ENCODER).document("odd").metadata == {
        "a": float("inf"),
        "b": 2**70,
        "c": True,
    }


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to index; the command uses a small encoder."""
    monkeypatch.setattr("precise_rag.cli.index.load_encoder", lambda *_, **__: ENCODER)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "lamp.txt").write_text(DOCUMENTS[0].text)
    return folder


def test_the_command_builds_where_a_first_build_was_interrupted(docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "index"
    out.mkdir()
    assert main(["index", str(docs), "--out", str(out)]) == 0
    (out / "manifest.json").unlink()
    assert main(["index", str(docs), "--out", str(out)]) == 0
    assert len(list(out.glob("data-*"))) == 1


def test_the_command_leaves_other_folders_alone(
    docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(docs)
    assert main(["index", str(docs), "--out", str(docs)]) == 1
    assert "must be another folder than" in capsys.readouterr().err
    assert tree(docs) == before


COMMAND = """
import sys
from precise_rag.cli import index, main
from precise_rag.testing import HashEncoder

index.load_encoder = lambda *_, **__: HashEncoder(8)
sys.exit(main())
"""


def test_two_commands_at_once_lose_no_document(tmp_path: Path) -> None:
    out = tmp_path / "index"
    folders = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(f"This is text {name}. It is short.")
        folders.append(tmp_path / name)
    command = [sys.executable, "-c", COMMAND, "index"]
    processes = [
        subprocess.Popen(
            [*command, str(folder), "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for folder in folders
    ]
    outputs = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert set(load_index(out, ENCODER).document_ids) == {"one.txt", "two.txt"}
