"""Whatever happens to the files of a saved index, it loads unchanged or raises IndexFormatError."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from precise_rag.errors import IndexFormatError
from precise_rag.index import load_index
from support.saved_indexes import BUILD, ENCODER, build, content

Change = Callable[[Path], object]


def flips(size: int, places: list[int]) -> Iterator[tuple[str, Change]]:
    """One bit of one byte each."""

    def change(place: int, bit: int) -> Change:
        def flip(file: Path) -> None:
            data = bytearray(file.read_bytes())
            data[place] ^= 1 << bit
            file.write_bytes(data)

        return flip

    return ((f"flip byte {place}", change(place, place % 8)) for place in places if place < size)


def all_flips(size: int) -> Iterator[tuple[str, Change]]:
    """Each bit of each byte."""
    for bit in range(8):

        def change(place: int, bit: int = bit) -> Change:
            def flip(file: Path) -> None:
                data = bytearray(file.read_bytes())
                data[place] ^= 1 << bit
                file.write_bytes(data)

            return flip

        yield from ((f"flip bit {bit} of byte {place}", change(place)) for place in range(size))


def cuts(size: int, lengths: list[int]) -> Iterator[tuple[str, Change]]:
    """The file cut to a length, or grown."""

    def change(length: int) -> Change:
        return lambda file: os.truncate(file, length)

    return (
        (f"truncate to {length}", change(length))
        for length in {*lengths, 0, size - 1, size + 1, size + 10**6}
    )


def replaced() -> Iterator[tuple[str, Change]]:
    """Something else where the file was."""

    def gone(file: Path) -> None:
        file.unlink()

    def folder(file: Path) -> None:
        file.unlink()
        file.mkdir()

    def pipe(file: Path) -> None:
        file.unlink()
        os.mkfifo(file)

    def link(file: Path) -> None:
        file.rename(file.parent.parent / "elsewhere")
        file.symlink_to(file.parent.parent / "elsewhere")

    def device(file: Path) -> None:
        file.unlink()
        file.symlink_to("/dev/zero")

    def dangling(file: Path) -> None:
        file.unlink()
        file.symlink_to("nowhere")

    def zeros(file: Path) -> None:
        file.write_bytes(bytes(file.stat().st_size))

    def noise(file: Path) -> None:
        file.write_bytes(random.Random(0).randbytes(file.stat().st_size))

    def other(file: Path) -> None:
        neighbours = sorted(f for f in file.parent.iterdir() if f.is_file() and f != file)
        file.write_bytes(neighbours[0].read_bytes() if neighbours else b"{}")

    def secret(file: Path) -> None:
        file.chmod(0)

    changes: list[Change] = [gone, folder, zeros, noise, other]
    if hasattr(os, "mkfifo"):
        changes += [pipe, link, device, dangling]
    if hasattr(os, "geteuid") and os.geteuid() != 0:
        changes.append(secret)
    return ((change.__name__, change) for change in changes)


def restore(original: Path, damaged: Path) -> None:
    """Put a file back, whatever is in its place."""
    if damaged.is_dir() and not damaged.is_symlink():
        damaged.rmdir()
    else:
        damaged.unlink(missing_ok=True)
    (damaged.parent.parent / "elsewhere").unlink(missing_ok=True)
    shutil.copy(original, damaged)


def try_all(
    kind: str, folder: Path, changes: Callable[[int], Iterator[tuple[str, Change]]]
) -> dict[str, int]:
    """Apply each change to each file. Returns how many were refused and how many did no harm."""
    saved, copy = folder / "saved", folder / "copy"
    index = build(kind)
    index.save(saved)
    expected = content(load_index(saved, ENCODER))
    counts = {"refused": 0, "unchanged": 0}
    files = [f.relative_to(saved) for f in saved.rglob("*") if f.is_file() and ".lock" not in f.name]
    assert len(files) > 4
    shutil.copytree(saved, copy)
    for file in files:
        for name, change in changes((saved / file).stat().st_size):
            change(copy / file)
            try:
                loaded = content(load_index(copy, ENCODER))
            except IndexFormatError:
                counts["refused"] += 1
            except Exception as error:
                raise AssertionError(f"{file}: {name}: raised {error!r}") from error
            else:
                assert loaded == expected, f"{file}: {name}: loads as something else"
                counts["unchanged"] += 1
            restore(saved / file, copy / file)
    return counts


@pytest.mark.parametrize("kind", BUILD)
def test_a_damaged_file_is_noticed(kind: str, tmp_path: Path) -> None:
    few = random.Random(kind)

    def changes(size: int) -> Iterator[tuple[str, Change]]:
        yield from flips(size, [few.randrange(max(size, 1)) for _ in range(6)])
        yield from cuts(size, [few.randrange(max(size, 1))])
        yield from replaced()

    counts = try_all(kind, tmp_path, changes)
    assert counts["refused"] > 10 * counts["unchanged"]


@pytest.mark.parametrize("kind", BUILD)
def test_a_data_folder_that_is_a_link_is_refused(kind: str, tmp_path: Path) -> None:
    build(kind).save(tmp_path / "index")
    (data,) = (tmp_path / "index").glob("data-*")
    data.rename(tmp_path / "elsewhere")
    data.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IndexFormatError, match="is not a folder"):
        load_index(tmp_path / "index", ENCODER)


@pytest.mark.parametrize("kind", BUILD)
def test_sizes_and_shapes_are_checked_without_checksums_too(kind: str, tmp_path: Path) -> None:
    index = build(kind)
    index.save(tmp_path / "index")
    expected = content(index)
    assert content(load_index(tmp_path / "index", ENCODER, verify="shape")) == expected
    for file in (tmp_path / "index").rglob("*.npy"):
        data = file.read_bytes()
        for damaged in (data[:-1], data + b"\0", data[:60], b""):
            file.write_bytes(damaged)
            with pytest.raises(IndexFormatError, match="damaged"):
                load_index(tmp_path / "index", ENCODER, verify="shape")
        file.write_bytes(data)
