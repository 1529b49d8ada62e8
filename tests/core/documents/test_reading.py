import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from precise_rag import Document
from precise_rag.documents import Place, place_of, read_documents
from precise_rag.errors import InputError
from precise_rag.types import Chunk


def test_a_folder_is_read_in_sorted_order_with_relative_ids(tmp_path):
    (tmp_path / "b.md").write_text("Two.")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.txt").write_text("One.\r\n", newline="")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")

    assert list(read_documents(tmp_path)) == [
        Document("a/one.txt", "One.\r\n", {"source": "a/one.txt"}),
        Document("b.md", "Two.", {"source": "b.md"}),
    ]


def test_jsonl_records_have_text_or_sections(tmp_path):
    records = [
        {"id": "x", "text": "Plain.", "title": "X"},
        {"sections": [{"heading": "H", "paragraphs": ["One.", "Two."]}, {"paragraphs": ["Three."]}]},
    ]
    file = tmp_path / "docs.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))

    first, second = read_documents(file)

    assert first == Document("docs.jsonl.gz#x", "Plain.", {"source": "docs.jsonl.gz", "title": "X"})
    assert (second.id, second.text) == ("docs.jsonl.gz#2", "One.\n\nTwo.\n\nThree.")


def test_an_empty_file_is_a_document_without_text(tmp_path):
    (tmp_path / "empty.txt").touch()
    assert [document.text for document in read_documents(tmp_path)] == [""]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"a\0b", "binary"),
        ("a.png", b"PNG", "cannot read this kind"),
        ("a.jsonl.gz", b"no gzip", "gzip"),
        ("a.jsonl", b'{"id": "x", "text"', "line 1: not valid JSON"),
        ("a.jsonl", b"\n[1]", "line 2: expected a JSON object"),
        ("a.jsonl", b'{"id": "x"}', 'needs a string "text"'),
        ("a.jsonl", b'{"id": "x", "text": "1"}\n{"id": "x", "text": "2"}', "occurs twice"),
        ("a.jsonl", b"[" * 100_000, "nested more than 100 levels"),
        ("a.jsonl", b'{"text": "x", "n": ' + b'{"a":' * 101 + b"1" + b"}" * 102, "nested more than 100"),
        ("a.jsonl", b'{"text": "x", "n": ' + b"9" * 5_000 + b"}", "a number has 5,000 digits; at most 1,000"),
        ("a.jsonl", b'{"text": "x", "text": "y"}', "the key 'text' occurs twice"),
        ("a.jsonl", b'{"text": "x", "m": {"k": 1, "k": 2}}', "the key 'k' occurs twice"),
        ("a.jsonl", b'{"text": "a\0b"}', "NUL"),
        ("a.jsonl", '{"text": "x"}'.encode("utf-16"), "not UTF-8 text but UTF-16"),
        ("a.txt", "The lamp".encode("utf-16-le"), "NUL"),
        ("a.jsonl", b'{"id": null, "text": "x"}', '"id" must be a filled string or a number, got None'),
        ("a.jsonl", b'{"id": "", "text": "x"}', '"id" must be a filled string'),
        ("a.jsonl", b'{"id": [1], "text": "x"}', '"id" must be a filled string'),
        ("a.jsonl", b'{"sections": [{"paragraphs": "abc"}]}', 'needs a string "text"'),
        ("a.jsonl.gz", gzip.compress(b'{"text": "x"}')[:-9], "not a complete gzip file"),
        ("a.jsonl.gz", gzip.compress(b"")[:10] + b"\xff" * 40, "not a complete gzip file"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        list(read_documents(tmp_path / name))
    assert name in str(error.value)


def test_a_missing_path_and_an_empty_folder_are_errors(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(read_documents(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="nothing to read"):
        list(read_documents(tmp_path))


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfOne.")
    (tmp_path / "b.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "Two."}')
    assert [document.text for document in read_documents(tmp_path)] == ["One.", "Two."]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.jsonl.gz"])
def test_the_size_of_a_file_is_limited_after_unpacking_too(tmp_path, name):
    text = json.dumps({"text": "x" * 50_000}) if "jsonl" in name else "x" * 50_014
    data = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
    (tmp_path / name).write_bytes(data)
    limit = len(text)
    (document,) = read_documents(tmp_path, max_bytes=limit)
    assert document.text.count("x") >= 50_000
    with pytest.raises(InputError, match=rf"{name}: holds more than {limit - 1:,} bytes.*--max-bytes"):
        list(read_documents(tmp_path, max_bytes=limit - 1))
    with pytest.raises(InputError, match="max_bytes must be at least 1, got 0"):
        list(read_documents(tmp_path, max_bytes=0))


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with links that stay in it and links that leave it."""
    folder, outside = tmp_path / "docs", tmp_path / "outside"
    for path in (folder / "sub", outside):
        path.mkdir(parents=True)
    (outside / "secret.txt").write_text("secret")
    (folder / "sub" / "own.txt").write_text("own")
    (folder / "alias.txt").symlink_to("sub/own.txt")
    (folder / "inner").symlink_to("sub")
    (folder / "around").symlink_to("..")
    (folder / "p.txt").symlink_to("../outside/secret.txt")
    (folder / "q").symlink_to(outside)
    return folder


def test_links_that_leave_the_folder_are_refused_by_name(linked):
    errors: list[InputError] = []
    found = {document.id: document.text for document in read_documents(linked, on_error=errors.append)}
    assert found == {"alias.txt": "own", "sub/own.txt": "own"}
    assert [str(error).split(":")[0] for error in errors] == [
        str(linked / name) for name in ("around", "p.txt", "q")
    ]
    assert all("outside the given folder" in str(e) and "--follow-links" in str(e) for e in errors)
    with pytest.raises(InputError, match="around: is a link to"):
        list(read_documents(linked))


def test_links_are_followed_if_asked_for_and_each_folder_once(linked):
    found = {document.id: document.text for document in read_documents(linked, follow_links=True)}
    assert sorted(found.values()) == ["own", "own", "secret", "secret"]
    assert found["p.txt"] == "secret"
    assert "around/outside/secret.txt" in found


def test_a_link_that_is_given_itself_is_the_user_s_choice(linked):
    assert [d.text for d in read_documents(linked / "p.txt")] == ["secret"]
    assert [d.text for d in read_documents(linked / "q")] == ["secret"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_and_devices_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (tmp_path / "ok.txt").write_text("ok")
    errors: list[InputError] = []
    found = list(read_documents(tmp_path, follow_links=True, on_error=errors.append))
    assert [document.id for document in found] == ["ok.txt"]
    assert [str(e).rsplit("/", 1)[1] for e in errors] == [
        "pipe.txt: is a pipe, a device or a socket; expected a file",
        "zero.jsonl: is a pipe, a device or a socket; expected a file",
    ]


def test_one_bad_file_or_line_does_not_stop_the_others(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "1"}\n{"tex\n{"id": "", "text": "3"}\n{"text": "4"}')
    (tmp_path / "c.txt").symlink_to("nowhere")
    (tmp_path / "d.txt").write_text("d")
    (tmp_path / "nowhere-else").symlink_to("nowhere")
    errors: list[InputError] = []
    paths = [tmp_path / "missing", tmp_path, tmp_path / "a.png"]
    found = [document.id for document in read_documents(*paths, on_error=errors.append)]
    assert found == ["b.jsonl#1", "b.jsonl#4", "d.txt"]
    assert len(errors) == 6
    assert "which does not exist" in str(errors[4])


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "ok.txt").write_text("ok")
    listdir = os.listdir

    def refuse(path):
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(InputError, match=r"closed: cannot be read \(Permission denied\)"):
        list(read_documents(tmp_path))


def test_folders_may_be_nested_deeper_than_functions(tmp_path):
    here = os.open(tmp_path, os.O_RDONLY)
    depth = 0
    try:
        (tmp_path / "e.txt").write_text("e")
        while depth < 1_200:
            os.mkdir("d", dir_fd=here)
            inner = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here, depth = inner, depth + 1
        assert [document.id for document in read_documents(tmp_path)] == ["e.txt"]
    finally:  # pytest's own way to delete folders is a recursion
        for _ in range(depth):
            outer = os.open("..", os.O_RDONLY, dir_fd=here)
            os.rmdir("d", dir_fd=outer)
            os.close(here)
            here = outer
        os.close(here)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "sub/a.txt"])
def test_a_link_that_comes_between_the_check_and_the_opening_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    (outside / "sub").mkdir(parents=True)
    for place in (folder, outside):
        (place / name).write_text('{"text": "secret"}' if place == outside else '{"text": "mine"}')
    original = os.open

    def swap(path: object, *args: object, **kwargs: object) -> int:
        """Put the link there, open, and put the folder back."""
        if str(path) != str(folder / name):
            return original(path, *args, **kwargs)
        folder.rename(tmp_path / "hidden")
        folder.symlink_to(outside)
        try:
            return original(path, *args, **kwargs)
        finally:
            folder.unlink()
            (tmp_path / "hidden").rename(folder)

    assert [document.text for document in read_documents(folder)]
    monkeypatch.setattr(os, "open", swap)
    with pytest.raises(InputError, match="was replaced while it was opened"):
        list(read_documents(folder))


def test_a_record_cannot_take_the_place_or_the_name_of_a_file(tmp_path: Path) -> None:
    forged = {"id": "policy.md", "source": "policy.md", "pages": [0], "headings": [[0, 1, "Policy"]]}
    more = {
        "precise": "{}",
        "$id": "policy.md",
        "record": 1,
        "title": "T",
        "year": 1,
    }
    (tmp_path / "data.jsonl").write_text(json.dumps({"text": "Forged.", **forged, **more}))
    (tmp_path / "list.json").write_text(json.dumps([{"text": "Forged.", **forged}]))
    (tmp_path / "table.csv").write_text("id,text,source\npolicy.md,Forged.,policy.md\n")
    (tmp_path / "policy.md").write_text("True.")
    found = {document.id: document for document in read_documents(tmp_path)}
    assert list(found) == ["data.jsonl#policy.md", "list.json#policy.md", "policy.md", "table.csv#policy.md"]
    assert found["policy.md"].text == "True."
    for identifier, document in found.items():
        assert document.metadata["source"] == identifier.partition("#")[0]
        assert place_of(Chunk(identifier, 0, 1, "x", metadata=document.metadata)) == Place(identifier)
    metadata = found["data.jsonl#policy.md"].metadata
    assert {key: metadata[key] for key in metadata if key != "record"} == {
        "source": "data.jsonl",
        "title": "T",
        "year": 1,
    }
    assert metadata["record"] == {
        key: value for key, value in {**forged, **more}.items() if key not in ("id", "title", "year")
    }
    assert found["table.csv#policy.md"].metadata["record"] == {"source": "policy.md"}


def test_records_have_their_ids_alone_if_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "x", "text": "X."}\n{"text": "Y."}\n')
    (tmp_path / "x").mkdir()
    assert [d.id for d in read_documents(tmp_path / "a.jsonl", own_ids=True)] == ["x", "a.jsonl#2"]


def test_a_file_whose_name_could_be_a_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl#x.md").write_text("Mine.")
    (tmp_path / "c#-notes.md").write_text("Mine.")
    errors: list[InputError] = []
    assert [d.id for d in read_documents(tmp_path, on_error=errors.append)] == ["c#-notes.md"]
    assert "could be the id of another file's record" in str(errors[0])


def test_without_the_extra_a_text_that_is_not_utf8_is_named_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    (tmp_path / "french.txt").write_bytes("Où est le café ?".encode("cp1252"))
    (tmp_path / "plain.txt").write_text("Où est le café ?", "utf-8")
    problems: list[InputError] = []

    documents = list(read_documents(tmp_path, on_error=problems.append))

    assert [document.id for document in documents] == ["plain.txt"]
    (problem,) = problems
    assert "french.txt: not UTF-8 text" in str(problem)
    assert "pip install 'precise-rag[documents]'" in str(problem)
