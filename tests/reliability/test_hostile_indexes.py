"""Indexes made by an attacker, with checksums that agree: they load, run and reach nothing."""

import json
import os
import random
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag.encoders import load_encoder
from precise_rag.encoders.packaged import packaged_minilm
from precise_rag.errors import IndexFormatError, ModelError, PreciseRagError
from precise_rag.index import DenseIndex, HybridIndex, load_index
from precise_rag.testing import HashEncoder
from precise_rag.types import Chunk, Document
from support.saved_indexes import (
    BUILD,
    DOCUMENTS,
    ENCODER,
    QUERIES,
    build,
    content,
    data_folder,
    read_manifest,
    read_segment,
    replace_array,
    replace_documents,
    sign,
    sign_segment,
)

ODD_VALUES = (
    None,
    True,
    -1,
    0,
    10**12,
    10**400,
    0.5,
    "",
    "x",
    "../x",
    "/etc/passwd",
    "\udc80",
    [],
    [1],
    {},
    {"a": 1},
)


class Named(HashEncoder):
    """An encoder with a name of one's choice."""

    def __init__(self, name: str, source: str | None = None) -> None:
        super().__init__(8)
        self._name = name
        self.source = source or name

    @property
    def name(self) -> str:
        return self._name


def opened(path: Path, kind: str) -> None:
    """Load and search, where only our errors may be raised."""
    with suppress(PreciseRagError), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # sums of numbers that are absurdly large
        index = load_index(path, ENCODER)
        for query in QUERIES:
            with suppress(PreciseRagError):
                index.search(query, 5)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value inside a manifest."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items)[:12]:
        yield from places(item, (*path, key))


def with_value(manifest: dict[str, Any], path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a manifest with another value at one place."""
    copy = json.loads(json.dumps(manifest))
    if not path:
        return value
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


def without(manifest: dict[str, Any], path: tuple[Any, ...]) -> Any:
    """A copy of a manifest without one value."""
    copy = inner = json.loads(json.dumps(manifest))
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return copy


@pytest.mark.parametrize("kind", BUILD)
def test_no_value_in_a_manifest_raises_anything_else(kind: str, tmp_path: Path) -> None:
    build(kind).save(tmp_path)
    whole = read_manifest(tmp_path)
    for read, write in ((read_segment, sign_segment), (lambda _: whole, sign)):
        manifest = {key: value for key, value in read(tmp_path).items() if key != "sha256"}
        changed: list[Any] = []
        for path in filter(None, places(manifest)):
            changed.append(without(manifest, path))
            changed += [with_value(manifest, path, value) for value in ODD_VALUES]
        for value in random.Random(kind).sample(changed, int(0.04 * len(changed))):
            write(tmp_path, value)
            opened(tmp_path, kind)
        write(tmp_path, manifest)
    for text in ("", "[]", "null", "{", "[" * 10**5, '{"format": NaN}', "1" * 5000, "\0", '"\\ud800"'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(IndexFormatError):
            load_index(tmp_path, ENCODER)


def odd_arrays(array: np.ndarray) -> Iterator[Any]:
    """Arrays that may be put in the place of one."""
    yield from (np.zeros_like(array), array[:-1], array[:0], array[::-1], np.concatenate([array, array]))
    yield from (np.zeros((0,)), np.float32(1.0).reshape(()), np.zeros((1, 1, 1)), np.array([None, "x"]))
    yield array[:, :1] if array.ndim == 2 else array[:, None]
    yield array.astype("U8") if array.ndim == 1 else array.T
    yield np.asfortranarray(np.ones((3, 4)))
    for dtype in ("f8", "f4", "i8", "i4", "u1", ">i8", "M8[s]", "c16"):
        with np.errstate(all="ignore"), suppress(TypeError, ValueError):
            yield array.astype(dtype)
    whole = array.dtype.kind != "f"
    extreme: tuple[float, ...] = (
        (np.iinfo(array.dtype).min, np.iinfo(array.dtype).max) if whole else (np.nan, np.inf, -np.inf, 3e38)
    )
    extreme += (-1,) if array.dtype.kind == "i" else ()
    for value in extreme:
        for place in (slice(None), slice(0, 1), slice(-1, None)):
            changed = array.copy()
            changed[place] = value
            yield changed


@pytest.mark.parametrize("kind", BUILD)
def test_no_array_raises_anything_else(kind: str, tmp_path: Path) -> None:
    chosen = random.Random(kind)
    build(kind).save(tmp_path)
    files = read_segment(tmp_path)
    names = [("offsets", "offsets"), *((p, n) for p in ("columns", "extras") for n in files[p])]
    tried = 0
    for part, name in names:
        file = data_folder(tmp_path) / f"{name}.npy"
        data, array = file.read_bytes(), np.load(file)
        for odd in odd_arrays(array):
            if chosen.random() >= 0.1:
                continue
            replace_array(tmp_path, part, name, odd)
            opened(tmp_path, kind)
            tried += 1
        file.write_bytes(data)
        sign_segment(tmp_path, files)


def test_no_documents_file_raises_anything_else(tmp_path: Path) -> None:
    build("hybrid").save(tmp_path)
    (file,) = tmp_path.glob("data-*/documents.jsonl")
    first, *rest = file.read_bytes().splitlines(keepends=True)
    record = json.loads(first)
    odd = [
        {**record, "id": 3},
        {**record, "id": ""},
        {**record, "text": None},
        {**record, "text": "short"},
        {**record, "metadata": []},
        {**record, "extra": 1},
        {"id": "lamp"},
        [],
        None,
        "x",
    ]
    lines = [json.dumps(value).encode() + b"\n" for value in odd]
    lines += [
        b"",
        b"\n",
        b"\xff\n",
        b"{\n",
        b"[" * 10**5 + b"\n",
        b'{"id": 1e999}\n',
        first + first,
        b"1" * 5000,
    ]
    for line in lines:
        replace_documents(tmp_path, line + b"".join(rest))
        with pytest.raises(IndexFormatError, match="damaged"):
            load_index(tmp_path, ENCODER)


@pytest.mark.parametrize(
    "name", ["../spans", "/tmp/spans", "..", "a/b", "a\\b", "x" * 300, "", "Spans", "spans.npy\0"]
)
def test_names_of_arrays_stay_inside_the_folder(name: str, tmp_path: Path) -> None:
    """On reading and on writing, where such a column overwrote a file of somebody else."""
    index = build("dense")
    index.save(tmp_path / "index")
    files = read_segment(tmp_path / "index")
    files["columns"][name] = files["columns"]["spans"]
    sign_segment(tmp_path / "index", files)
    with pytest.raises(IndexFormatError, match="is not the name of an array"):
        load_index(tmp_path / "index", ENCODER)
    collection = index._rows.parts[0].segment.collection
    object.__setattr__(collection, "columns", {**collection.columns, name: np.zeros(len(index))})
    with pytest.raises(PreciseRagError):
        index.save(tmp_path / "new")
    assert not (tmp_path / "spans.npy").exists()


@pytest.mark.parametrize(
    "name", ["..", ".", "../other", "/etc", "data-raw", "data-" + "A" * 32, "data-" + "0" * 31 + "/"]
)
def test_the_data_folder_stays_inside_the_folder(name: str, tmp_path: Path) -> None:
    build("dense").save(tmp_path)
    manifest = read_manifest(tmp_path)
    manifest["segments"][0]["data"] = name
    sign(tmp_path, manifest)
    with pytest.raises(IndexFormatError, match="is not the name of a data folder"):
        load_index(tmp_path, ENCODER)


def test_an_index_names_no_encoder_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a folder inside it, nor a name of the hub, nor a service that costs money."""
    evil = tmp_path / "index" / "model"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("reached for the network"))
    for source in (str(evil), "openai:text-embedding-3-small", "somebody/model", "all-MiniLM-L6-v3", "data"):
        DenseIndex.build(DOCUMENTS, Named(source)).save("index")
        with pytest.raises(ModelError, match=r"load_index\(path, encoder\)"):
            load_index("index")
        assert load_index("index", Named(source)).search("lamp")


def test_the_name_of_the_packaged_encoder_opens_only_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with another source in the manifest, and a folder of that name in the current folder."""
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    monkeypatch.chdir(tmp_path)
    DenseIndex.build([], Named("all-MiniLM-L6-v2", source=str(tmp_path / "all-MiniLM-L6-v2"))).save("index")
    loaded = load_index("index")
    assert loaded.encoder is not None
    assert loaded.encoder.name == "all-MiniLM-L6-v2"
    assert getattr(loaded.encoder, "_folder", None) == packaged_minilm()


def model_with(folder: Path, modules: object) -> Path:
    """A folder that looks like a model and holds a Python file."""
    folder.mkdir()
    (folder / "modules.json").write_text(modules if isinstance(modules, str) else json.dumps(modules))
    (folder / "model.safetensors").write_bytes(b"x")
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Evil: pass\n")
    return folder


@pytest.mark.parametrize(
    "modules",
    [
        [{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}],
        [{"type": "sentence_transformers.models.Transformer"}, {"type": "os.system"}],
        [{"type": "sentence_transformers/../evil.Evil"}],
        {"type": "evil.Evil"},
        "{",
    ],
)
def test_a_model_folder_with_code_of_its_own_is_refused(modules: object, tmp_path: Path) -> None:
    folder = model_with(tmp_path / "model", modules)
    with pytest.raises(ModelError, match=r"modules\.json"):
        load_encoder(folder)
    assert not (folder / "ran").exists()
    assert "evil" not in sys.modules


def test_code_named_by_a_nested_module_is_refused(tmp_path: Path) -> None:
    modules = [{"type": "sentence_transformers.models.Transformer"}]
    for file, settings in (
        ("router_config.json", {"types": {"0": "evil.Evil"}}),
        ("config.json", {"activation_function": "evil.Evil"}),
    ):
        folder = model_with(tmp_path / file.partition("_")[0].partition(".")[0], modules)
        (folder / "1_Part").mkdir()
        (folder / "1_Part" / file).write_text(json.dumps(settings))
        with pytest.raises(ModelError, match=r"evil\.Evil"):
            load_encoder(folder)


@pytest.mark.parametrize("setting", ["passages", "surroundings"])
def test_a_segmenter_that_an_index_names_is_not_loaded(setting: str, tmp_path: Path) -> None:
    """It can be searched; to grow, the user names the segmenter again."""
    index = HybridIndex.build(DOCUMENTS, ENCODER)
    index.save(tmp_path / "index")
    manifest = read_manifest(tmp_path / "index")
    manifest["settings"][setting] = str(tmp_path / "index" / "model")
    sign(tmp_path / "index", manifest)
    loaded = load_index(tmp_path / "index", ENCODER)
    assert loaded.search("lamp")
    with pytest.raises(ModelError, match="a saved index does not choose models"):
        loaded.add([Document("new", "A new text.")])
    loaded.save(tmp_path / "again")
    assert read_manifest(tmp_path / "again")["settings"] == manifest["settings"]


def test_a_segmenter_given_again_is_used(tmp_path: Path) -> None:
    class Whole:
        name = "whole"

        def segment(self, text: Document, table: object = None) -> list[Chunk]:
            return [Chunk(text.id, 0, len(text.text), text.text)]

    HybridIndex.build(DOCUMENTS, ENCODER, passages=Whole()).save(tmp_path)
    loaded = load_index(tmp_path, ENCODER, passages=Whole())
    loaded.add([Document("new", "A new text.")])
    assert loaded.search("new text")[0].doc_id == "new"


def test_stop_words_that_an_index_names_are_not_looked_for_on_the_disk(tmp_path: Path) -> None:
    HybridIndex.build(DOCUMENTS, ENCODER).save(tmp_path)
    manifest = read_manifest(tmp_path)
    for source in ("nltk:../../secret", "nltk:/dev/zero", "other"):
        manifest["settings"]["stop_words"] = source
        sign(tmp_path, manifest)
        with pytest.raises(IndexFormatError, match="'stop_words'"):
            load_index(tmp_path, ENCODER)


def test_a_saved_faiss_index_is_read_only_if_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """faiss trusts the numbers in it; checksums that agree do not make them true."""
    faiss = pytest.importorskip("faiss")
    index = DenseIndex.build(DOCUMENTS, ENCODER, backend="faiss:HNSW8")
    index.save(tmp_path)
    (file,) = tmp_path.glob("data-*/faiss.npy")
    blob = np.load(file)
    for odd in (blob[:0], blob[:10], blob[: len(blob) // 2], np.zeros_like(blob), blob[::-1]):
        replace_array(tmp_path, "extras", "faiss", odd.copy())
        with pytest.raises(IndexFormatError, match="damaged"):
            DenseIndex.load(tmp_path, ENCODER, trusted=True)
    monkeypatch.setattr(faiss, "deserialize_index", lambda *_: pytest.fail("was read"))
    manifest = read_manifest(tmp_path)
    for settings in (manifest["settings"], {**manifest["settings"], "trusted": True}):
        sign(tmp_path, {**manifest, "settings": settings})
        with suppress(IndexFormatError):
            assert content(load_index(tmp_path, ENCODER)) == content(index)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_an_index_reached_by_a_link_is_the_user_s_choice(tmp_path: Path) -> None:
    build("dense").save(tmp_path / "index")
    (tmp_path / "link").symlink_to(tmp_path / "index")
    loaded = load_index(tmp_path / "link", ENCODER)
    loaded.delete(["lamp"])
    loaded.save(tmp_path / "link")
    assert load_index(tmp_path / "index", ENCODER).document_ids == ("blank", "straße")
