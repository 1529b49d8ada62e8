"""Whatever happens to the files of an index or a model, it loads unchanged or is refused; nothing runs."""

import json
import os
import random
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from precise_rag import Candidate, Segmenter
from precise_rag.checkpoints import packaged_model, save_checkpoint
from precise_rag.encoders import load_encoder
from precise_rag.encoders.local import MINILM, packaged_encoder
from precise_rag.errors import IndexFormatError, ModelError
from precise_rag.index import DenseIndex, HybridIndex, load_index
from precise_rag.rerank import load_reranker
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.packaged import PackagedReranker
from precise_rag.testing import HashEncoder
from precise_rag.types import Chunk, Document
from support.documents import read_cases
from support.faults import IN_PLACE_OF_A_FILE, failing, not_allowed
from support.saved_indexes import (
    BUILD,
    DOCUMENTS,
    ENCODER,
    build,
    content,
    data_file,
    read_manifest,
    replace_arrays,
    sign,
)

Change = Callable[[Path], object]


class Named(HashEncoder):
    """An encoder with a name of one's choice."""

    def __init__(self, name: str, source: str | None = None) -> None:
        super().__init__(8)
        self._name = name
        self.source = source or name

    @property
    def name(self) -> str:
        return self._name


def flip(place: int) -> Change:
    """A change of one bit of one byte."""

    def change(file: Path) -> None:
        data = bytearray(file.read_bytes())
        data[place] ^= 1 << place % 8
        file.write_bytes(data)

    return change


def cut(length: int) -> Change:
    """A file cut to a length, or grown."""
    return lambda file: os.truncate(file, length)


def link(file: Path) -> None:
    file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def replaced(fault: str) -> Change:
    """Something else in the place of the file."""

    def change(file: Path) -> None:
        file.unlink()
        IN_PLACE_OF_A_FILE[fault](file)

    return change


def changes(saved: Path, name: str, choose: random.Random) -> Iterator[Change]:
    """Changes of a file of the index or model in `saved`."""
    size = (saved / name).stat().st_size
    yield from (flip(choose.randrange(size)) for _ in range(10))
    yield from (cut(length) for length in (0, size - 1, size + 1, size + 10**6, choose.randrange(size)))
    yield from map(replaced, IN_PLACE_OF_A_FILE)
    yield link
    yield lambda file: file.write_bytes(choose.randbytes(size))
    yield lambda file: file.write_bytes(next(f for f in saved.iterdir() if f.name != name).read_bytes())


def restore(original: Path, damaged: Path) -> None:
    """Put a file back, whatever is in its place."""
    if damaged.is_dir() and not damaged.is_symlink():
        damaged.rmdir()
    else:
        damaged.unlink(missing_ok=True)
    (damaged.parent.parent / "elsewhere").unlink(missing_ok=True)
    shutil.copy(original, damaged)


def check_damaged(
    saved: Path, copy: Path, names: Sequence[str], use: Callable[[Path], object], error: type[Exception]
) -> None:
    """Check that what a folder is used for is the same after any change of a file, or the error."""
    choose, refused, expected = random.Random(saved.name), 0, use(saved)
    shutil.copytree(saved, copy)
    for name in names:
        for change in changes(saved, name, choose):
            change(copy / name)
            try:
                assert use(copy) == expected, f"{name} loads as something else"
            except error:
                refused += 1
            restore(saved / name, copy / name)
    assert refused > 30


@pytest.mark.parametrize("kind", BUILD)
def test_a_damaged_file_of_an_index_is_noticed(kind: str, tmp_path: Path) -> None:
    build(kind).save(saved := tmp_path / kind)
    files = ["manifest.json", data_file(saved).name]
    check_damaged(
        saved, tmp_path / "copy", files, lambda path: content(load_index(path, ENCODER)), IndexFormatError
    )


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", "[" * 10**5, '{"format": NaN}', "1" * 5000, "\0", '"\\ud800"']
)
def test_a_manifest_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    build("dense").save(tmp_path)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(IndexFormatError):
        load_index(tmp_path, ENCODER)


def test_an_index_names_no_encoder_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a folder inside it, nor a name of the hub, nor a service that costs money."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("reached for the network"))
    inside = str(tmp_path / "index" / "model")
    for source in (inside, "openai:text-embedding-3-small", "somebody/model", "all-MiniLM-L6-v3", "data"):
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
    assert loaded.encoder.name == "all-MiniLM-L6-v2"
    assert getattr(loaded.encoder, "_folder", None) == packaged_encoder(MINILM)


class Whole:
    """A segmenter whose name is that of a folder."""

    def __init__(self, path: Path) -> None:
        self.name = str(path / "model")

    def segment(self, text: Document, table: object = None) -> list[Chunk]:
        return [Chunk(text.id, 0, len(text.text), text.text)]


@pytest.mark.parametrize("setting", ["passages", "surroundings"])
def test_a_segmenter_that_an_index_names_is_not_loaded(setting: str, tmp_path: Path) -> None:
    """It can be searched; to grow, the user names the segmenter again."""
    HybridIndex.build(DOCUMENTS, ENCODER, **{setting: Whole(tmp_path)}).save(tmp_path)
    loaded = load_index(tmp_path, ENCODER)
    assert loaded.search("lamp")
    with pytest.raises(ModelError, match="a saved index does not choose models"):
        loaded.add([Document("new", "A new text.")])
    loaded.save(tmp_path)
    loaded = load_index(tmp_path, ENCODER, **{setting: Whole(tmp_path)})
    loaded.add([Document("new", "A new text.")])
    assert loaded.search("new text")[0].doc_id == "new"


@pytest.mark.parametrize(("setting", "value"), read_cases("index.json", "not written by a save"))
def test_what_no_save_writes_is_refused(setting: str, value: object, tmp_path: Path) -> None:
    """A data file stays inside the folder, and stop words are not looked for on the disk."""
    build("hybrid").save(tmp_path)
    manifest = read_manifest(tmp_path)
    message = "not the name of a data file" if setting == "file" else setting
    (manifest["shards"][0] if setting == "file" else manifest["settings"])[setting] = value
    sign(tmp_path, manifest)
    with pytest.raises(IndexFormatError, match=message):
        load_index(tmp_path, ENCODER)


@pytest.mark.parametrize(("name", "value"), read_cases("commands.json", "arrays that do not fit"))
def test_arrays_that_do_not_fit_each_other_are_refused_whatever_their_checksum(
    name: str, value: int | None, tmp_path: Path
) -> None:
    """Their numbers would decide how much memory is taken."""
    build("hybrid").save(tmp_path)
    array = load_file(data_file(tmp_path))[name]
    if value is None:
        replace_arrays(tmp_path, {name: array[:-1].copy()})
    else:
        array[-1] = value
        replace_arrays(tmp_path, {name: array})
    with pytest.raises(IndexFormatError, match="do not fit each other"):
        load_index(tmp_path, ENCODER)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_an_index_reached_by_a_link_is_the_user_s_choice(tmp_path: Path) -> None:
    build("dense").save(tmp_path / "index")
    (tmp_path / "link").symlink_to(tmp_path / "index")
    loaded = load_index(tmp_path / "link", ENCODER)
    loaded.delete(["lamp"])
    loaded.save(tmp_path / "link")
    assert load_index(tmp_path / "index", ENCODER).document_ids == ("blank", "straße")


def test_an_index_that_the_system_keeps_back_is_not_called_damaged(tmp_path: Path) -> None:
    build("dense").save(tmp_path)
    for at in range(1, 9):  # the manifest, and then the data
        with failing(at, not_allowed), pytest.raises(IndexFormatError, match=r"Permission .* or try again"):
            load_index(tmp_path, ENCODER)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(IndexFormatError, match=r"levels of symbolic links.* or try again"):
        load_index(tmp_path / "loop", ENCODER)


TEXT = "One is here. Two is there. Three is gone. Four came back."


def segment(folder: Path) -> list[str]:
    segmenter = Segmenter.from_pretrained(folder, encoder=HashEncoder(384))
    return [chunk.text for chunk in segmenter.segment(TEXT)]


def rerank(folder: Path) -> list[float]:
    candidate = Candidate("a", 0, 5, "Paris", score=1.0, score_scale="cosine")
    return PackagedReranker(folder).score("Paris?", [candidate]).tolist()


USES: dict[str, Callable[[Path], object]] = {
    "segmentation-small": segment,
    "segmentation-sage": segment,
    "reranker": rerank,
    "reranker-cascade": lambda folder: CascadeReranker(folder, device="cpu").load_model(),
}


@pytest.fixture(params=USES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return shutil.copytree(packaged_model(request.param), tmp_path / request.param)


def test_a_damaged_file_of_a_model_is_noticed_or_harmless(folder: Path, tmp_path: Path) -> None:
    """White space between the settings may change."""
    files = [file.name for file in sorted(folder.iterdir())]
    check_damaged(folder, tmp_path / "copy", files, USES[folder.name], ModelError)


def test_settings_and_tensors_that_do_not_fit_each_other_are_refused(folder: Path) -> None:
    """Although their checksums are right."""
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        others = {other: kept for other, kept in tensors.items() if other != name}
        for changes in ({}, {name: tensor.reshape(-1, 1, 1)}, {name: np.float32([np.nan])}):
            save_checkpoint(folder, config, {**others, **changes})
            with pytest.raises(ModelError):
                USES[folder.name](folder)
    for name in config:
        save_checkpoint(folder, {**config, name: None}, tensors)
        with suppress(ModelError):  # of settings that are only told, such as the seed
            USES[folder.name](folder)


def test_a_model_does_not_choose_a_paid_encoder(tmp_path: Path) -> None:
    source = packaged_model("segmentation-sage")
    config = json.loads((source / "config.json").read_text())
    tensors = load_file(source / "model.safetensors")
    save_checkpoint(tmp_path, {**config, "encoder": "openai:text-embedding-3-small"}, tensors)
    with pytest.raises(ModelError, match="pass encoder="):
        Segmenter.from_pretrained(tmp_path)
    Segmenter.from_pretrained(tmp_path, encoder=HashEncoder(384)).segment(TEXT)


_TRANSFORMER = [{"type": "sentence_transformers.models.Transformer"}]


@pytest.mark.parametrize("load", [load_encoder, load_reranker])
@pytest.mark.parametrize(("file", "settings"), read_cases("encoders.json", "with code of their own"))
def test_a_folder_that_names_code_of_its_own_is_refused(
    load: Callable[[Path], object], file: str, settings: object, tmp_path: Path
) -> None:
    (tmp_path / "1_Part").mkdir()
    (tmp_path / "modules.json").write_text(json.dumps(_TRANSFORMER))
    (tmp_path / file).write_text(json.dumps(settings))
    (tmp_path / "model.safetensors").write_bytes(b"x")
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    with pytest.raises(ModelError, match=r"modules\.json|names '(evil\.Evil|os\.system|torch\.hub\.load)'"):
        load(tmp_path)
    assert not (tmp_path / "ran").exists()
