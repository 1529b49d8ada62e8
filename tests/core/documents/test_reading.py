"""Files in, documents out: kinds, encodings, records, links, and what cannot be read."""

import csv
import json
import os
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from precise_rag import Document
from precise_rag.documents import files, read_documents, reading
from precise_rag.errors import InputError
from precise_rag.facts import place_at, place_name
from precise_rag.types import Candidate
from support.documents import read_cases

NO_CHARACTER = f"&#{'9' * 5_000};"


def test_a_folder_is_read_in_sorted_order_with_relative_ids(tmp_path, caplog):
    hidden = "a/.hidden.md", ".git/x.txt"
    for name in ("b.md", "a/one.txt", *hidden, "a/code.py", "LICENSE", "picture.png", "a/run", "no", "zero"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text({"no": "\x7fELF\0", "zero": ""}.get(name, name), newline="")
    (tmp_path / "c.txt").write_bytes(b"\xef\xbb\xbfOne.\r\n")
    (tmp_path / "empty.txt").touch()
    found = list(read_documents(tmp_path))
    assert " ".join(document.id for document in found) == (
        "LICENSE a/code.py a/one.txt a/run b.md c.txt empty.txt"
    )
    assert caplog.messages == [
        f"{tmp_path}: files of kinds that cannot be read: no (1), .png (1), zero (1)",
        f"{tmp_path}: left out, hidden or filled by tools (to read one, give its own path): .hidden.md (1)",
    ]
    assert found[2] == Document("a/one.txt", "a/one.txt", {"source": "a/one.txt"})
    assert [document.text for document in found[-2:]] == ["One.\r\n", ""]


def test_what_tools_fill_is_left_out_and_named_unless_its_own_path_is_given(tmp_path, caplog):
    read = ["Containerfile", "app.properties", "go.mod", "web/a.mts", "web/data-2020.csv", "web/lamp.service"]
    read.append("web/manifest.json")
    filled = ["node_modules/a.js", "web/node_modules/b.js", "env/lib/c.py", "target/d.rs", ".github/e.yml"]
    marks = ["env/pyvenv.cfg", "target/CACHEDIR.TAG", "old/a.txt", f"old/data-{uuid4().hex}.safetensors"]
    for name in (*read, *filled, *marks, ".git/f.txt", *(f"n.{n}" for n in "abeijklopq"), "web/n.q"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}" if name == "web/manifest.json" else name)
    assert [document.id for document in read_documents(tmp_path)] == read
    kinds, names = caplog.messages
    assert kinds.endswith(": .q (2), .a (1), .b (1), .e (1), .i (1), .j (1), .k (1), .l (1), .o (1), …")
    assert names.endswith(": node_modules (2), .github (1), env (1), old (1), target (1)")
    for name in filled:
        folder = tmp_path / name.split("/")[0] if "web" not in name else tmp_path / "web" / "node_modules"
        assert [document.text for document in read_documents(folder)][:1] == [name]


def test_excluded_names_and_paths_are_left_out_and_ids_of_several_paths_begin_with_their_names(
    tmp_path, monkeypatch
):
    for name in ("a.md", "b.log", "drafts/c.md", "old/drafts.md", "old/d.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    found = read_documents(tmp_path, exclude=["*.log", "drafts", "old/dr*"])
    assert [document.id for document in found] == ["a.md", "old/d.md"]
    for folder in ("docs", "src"):
        (tmp_path / folder / "in").mkdir(parents=True)
        (tmp_path / folder / "in" / "a.md").write_text(folder)
    monkeypatch.chdir(tmp_path)
    both = ["docs/in/a.md", "src/in/a.md"]
    for paths in (("docs", "./src"), both, ("docs", "src/in/a.md"), ("docs", "src/../docs", "src")):
        assert [document.id for document in read_documents(*paths)] == both
    for paths, exclude in (([""], ()), (["docs"], "a.md"), (["docs"], 7)):
        with pytest.raises(InputError, match=r"path cannot be a path: it is empty|exclude must be a list of"):
            next(read_documents(*paths, exclude=exclude))


def test_lines_lists_and_tables_with_a_text_are_records_below_their_file_and_others_are_read_as_they_are(
    tmp_path,
):
    file = tmp_path / "docs.jsonl"
    file.write_text('{"id": "x", "text": "Plain.", "title": "X"}\n\n{"text": "Two."}')
    first, second = read_documents(file)
    assert first == Document("docs.jsonl#x", "Plain.", {"source": "docs.jsonl", "title": "X"})
    assert second == Document("docs.jsonl#3", "Two.", {"source": "docs.jsonl"})
    file.unlink()
    (tmp_path / "a.json").write_text('[{"text": "One.", "year": 1}]')
    (tmp_path / "b.json").write_text('{"price": 12}')
    long = "word, " * 20_000 + '"'
    with (tmp_path / "c.csv").open("w", newline="") as file:
        rows = ["id", "text", "year", "zip"], ["x", long, "1999", "10115"], ["", "Two.", "", "01067"]
        csv.writer(file).writerows(rows)
    (tmp_path / "d.csv").write_text('Made in May.\ncity;country\n"Os\nlo";No|way;\n')
    assert {document.id: document.text for document in read_documents(tmp_path)} == {
        "a.json#1": "One.",
        "b.json": '{"price": 12}',
        "c.csv#x": long,
        "c.csv#2": "Two.",
        "d.csv": "Made in May.\n\n| city | country |\n| --- | --- |\n| Os lo | No\\|way |\n",
    }
    (tmp_path / "a.json").write_text('{"text": "One."}\r\n{"text": "Two."}')
    assert [one.text for one in read_documents(tmp_path / "a.json")] == ["One.", "Two."]
    data = '\n{"m": {"text": "a"}}\n["text"]\n{"cut'
    for name, lines in ("e.jsonl", data), ("f.json", "{}\n{}"), ("f.ndjson", '{"id": 1}'), ("f.po", "#"):
        (tmp_path / name).write_text(lines)
        assert [*read_documents(tmp_path / name)] == [Document(name, lines, {"source": name})]
    fields = {document.id: document.metadata for document in read_documents(tmp_path / "c.csv")}
    assert fields["c.csv#x"] == {"source": "c.csv", "year": 1999, "zip": "10115"}


def test_a_table_of_many_columns_and_short_rows_is_read_in_linear_time(tmp_path):
    head = ",".join(f"c{number}" for number in range(5_000))
    (tmp_path / "a.csv").write_text(f"text,{head}\n" + "1,2,x\n" * 5_000)
    started = time.process_time()
    last = [*read_documents(tmp_path)][-1]
    assert last.metadata == {"source": "a.csv", "c0": 2, "c1": "x"}
    assert time.process_time() - started < 2


def test_messages_have_their_subject_as_title(tmp_path):
    message = (
        b"From: Ilse <i@a.example>\r\nSubject: =?utf-8?q?F=C3=A4hre?=\r\n\r\nT\xe4glich um 23:40 Uhr.\r\n"
    )
    (tmp_path / "a.eml").write_bytes(message)
    (tmp_path / "b.mbox").write_bytes((b"From i@a.example Mon\n" + message + b">From 9 on.\n\n") * 2)
    found = list(read_documents(tmp_path))
    assert [document.id for document in found] == ["a.eml", "b.mbox#1", "b.mbox#2"]
    assert found[0].text.splitlines() == ["Täglich um 23:40 Uhr."]
    assert found[2].text.splitlines()[:2] == ["Täglich um 23:40 Uhr.", "From 9 on."]
    named = {"title": "Fähre, Ilse <i@a.example>", "from": "Ilse <i@a.example>"}
    assert found[0].metadata == {"source": "a.eml", **named}


@pytest.mark.parametrize(
    ("name", "head"),
    [("a.eml", b"Content-Type: text/plain; charset=%s\n\n"), ("a.xml", b"<?xml encoding='%s'?>\xe4")],
)
@pytest.mark.parametrize("encoding", [b"punycode", b"unicode_escape"])
def test_a_text_is_decoded_by_no_encoding_of_names_or_source_code(tmp_path, name, head, encoding):
    (tmp_path / name).write_bytes(head % encoding + rb"\x41 lamp-aaa")
    assert r"\x41 lamp-aaa" in next(read_documents(tmp_path)).text


def test_headers_of_mail_are_read_in_linear_time_up_to_a_limit(tmp_path):
    long = (b"From: %s" % (b'"' * 300_000), b"Subject: %s" % (b"=?utf-8?q?x?= " * 30_000), b"To: a:;a:;")
    for number, header in enumerate(long):
        (tmp_path / f"{number}.eml").write_bytes(header + b"\r\n\r\nThe lamp is lit.")
    assert [document.text for document in read_documents(tmp_path)] == ["The lamp is lit."] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"text": "x", "n": ' + '{"a":' * 101 + "1" + "}" * 102, "nested more than 100"),
        ("a.jsonl", "[" * 100_000, "nested more than 100 levels"),
        ("a.jsonl", '{"text": "x", "n": ' + "9" * 5_000 + "}", "not valid JSON"),
        *read_cases("documents.json", "bad files"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=message) as error:
        list(read_documents(tmp_path / name))
    assert name in str(error.value)


def test_one_bad_file_or_line_does_not_stop_the_others(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\0")
    (tmp_path / "b.jsonl").write_bytes(
        b'{"text": "1"}\n{"tex\n{"id": "", "text": "3"}\n{"text": "4"}\n{"text": "5", "id": 4}'
    )
    (tmp_path / "c.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "d.txt").write_text("d")
    (tmp_path / "none").mkdir()
    deep = b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n"
    bad = b"".join(deep % (level, level) for level in range(40)) + b"\n" * 300_000
    (tmp_path / "e.mbox").write_bytes(b"".join(b"From x\n" + one + b"\n" for one in (b"\ne1", bad, b"\ne3")))
    (tmp_path / "f.json").write_text('[{"text": "f1"}, {"text": 2}, {"text": "f3"}]')
    (tmp_path / "g.vtt").write_text(f"0:01.0 --> 0:02.0\n{NO_CHARACTER}\n")
    errors: list[InputError] = []
    (tmp_path / "a.png").touch()
    paths = [tmp_path / "missing", tmp_path, tmp_path / "a.png", tmp_path / "none"]
    found = [document.text.strip() for document in read_documents(*paths, on_error=errors.append)]
    assert found == ["1", "4", "d", "e1", "e3", "f1", "f3", NO_CHARACTER]
    in_files = "binary", "(the first of 3 errors in this file)", "does not exist", "message 2", "record 2"
    parts = ("no such file", *in_files, "this kind", "nothing to read")
    assert [part in str(error) for part, error in zip(parts, errors, strict=True)] == [True] * 8
    assert "line 2: not valid JSON" in str(errors[2])


def test_whatever_reading_a_file_raises_names_it_and_the_others_are_read(tmp_path, monkeypatch):
    def fail(data: bytes, file: Path) -> str:
        if file.stem == "b":
            raise RuntimeError("unforeseen")
        return files.decode(data, file)

    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(name)
    monkeypatch.setattr(reading, "decode", fail)
    errors: list[InputError] = []
    assert [document.text for document in read_documents(tmp_path, on_error=errors.append)] == ["a", "c"]
    assert [str(error) for error in errors] == [f"{tmp_path / 'b.txt'}: cannot be read (unforeseen)"]


def test_the_size_of_a_file_is_limited(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("12345")
    monkeypatch.setattr(files, "MOST_FILE_BYTES", 4)
    with pytest.raises(InputError, match="holds more than 4 bytes"):
        list(read_documents(tmp_path))


def test_links_that_leave_the_folder_are_refused_by_name(tmp_path):
    folder, outside = tmp_path / "docs", tmp_path / "outside"
    for path in (folder / "sub", outside):
        path.mkdir(parents=True)
    (outside / "secret.txt").write_text("secret")
    (folder / "sub" / "own.txt").write_text("own")
    (folder / "alias.txt").symlink_to("sub/own.txt")
    (folder / "inner").symlink_to("sub")
    for name, target in (("around", ".."), ("p.txt", "../outside/secret.txt"), ("q", outside)):
        (folder / name).symlink_to(target)
    errors: list[InputError] = []
    found = {document.id: document.text for document in read_documents(folder, on_error=errors.append)}
    assert found == {"alias.txt": "own", "sub/own.txt": "own"}
    assert [str(error).split(":")[0] for error in errors] == [
        str(folder / n) for n in ("around", "p.txt", "q")
    ]
    for own_choice in (folder / "p.txt", folder / "q"):
        assert [document.text for document in read_documents(own_choice)] == ["secret"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_and_devices_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    for name in ("pipe.txt", "zero.jsonl"):
        with pytest.raises(InputError, match="is a pipe, a device or a socket; expected a file"):
            list(read_documents(tmp_path / name))


def test_a_record_cannot_take_the_place_or_the_name_of_a_file(tmp_path: Path) -> None:
    own = {"source": "policy.md", "precise_pages": [0], "precise": "{}", "$id": "policy.md", "record": 1}
    forged = {"id": "policy.md", "text": "Forged.", "year": 1, **own}
    (tmp_path / "data.jsonl").write_text(json.dumps(forged))
    (tmp_path / "list.json").write_text(json.dumps([forged]))
    (tmp_path / "table.csv").write_text("id,text,source\npolicy.md,Forged.,policy.md\n")
    (tmp_path / "policy.md").write_text("True.")
    found = {document.id: document for document in read_documents(tmp_path)}
    assert list(found) == ["data.jsonl#policy.md", "list.json#policy.md", "policy.md", "table.csv#policy.md"]
    assert found["policy.md"].text == "True."
    assert found["data.jsonl#policy.md"].metadata == {"source": "data.jsonl", "year": 1, "record": own}
    assert found["table.csv#policy.md"].metadata["source"] == "table.csv"


@pytest.mark.parametrize(("encoding", "text"), read_cases("documents.json", "encodings"))
def test_encodings_are_detected(encoding: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    (tmp_path / "b.txt").write_bytes("Damaged: Größe ".encode() + b"\xfc")
    assert [document.text for document in read_documents(tmp_path)] == [text, "Damaged: Größe \ufffd"]


def test_without_the_extra_a_text_that_is_not_utf8_is_named_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "chardet", None)
    (tmp_path / "french.txt").write_bytes("Où est le café ?".encode("cp1252"))
    with pytest.raises(InputError, match=r"french.txt: not UTF-8 text.*'precise-rag\[documents\]'"):
        list(read_documents(tmp_path))


def test_what_is_said_goes_on_from_caption_to_caption_and_its_times_are_places(tmp_path: Path) -> None:
    """A tag is not said, a line that rolls up is said once, and who speaks is named once."""
    cues = (
        "<v Ann>It <i>opens</i> except",
        "<v Ann>It opens except\non {\\an8}Sundays &amp; in",
        "<v Bo>May.",
    )
    for name, mark, start, zero in (
        ("a.srt", ",", "1\n00:", "0"),
        ("b.vtt", ".", "\nNOTE not said\n\n", "0"),
        ("c.vtt", ".", "8f0a/12-0\n0:", ""),
    ):
        times = [f"{start}{zero}{i}:{zero}1{mark}0{zero} --> 00:0{i}:02{mark}500" for i in range(3)]
        written = "\n".join(f"{time} line:9\n{cue}\n" for time, cue in zip(times, cues, strict=True))
        (tmp_path / name).write_text(f"WEBVTT\n{written}", newline="\r\n")
    for document in read_documents(tmp_path):
        assert document.text == "Ann: It opens except\non Sundays & in\nBo: May.\n"
        found = [document.text.index(words) for words in ("It", "on S", "May")]
        assert [place_at(document.metadata, place) for place in found] == [
            {"time": f"00:0{i}:01"} for i in range(3)
        ]
        whole = Candidate("", 0, 1, document.text, 1, "rank", metadata=document.metadata)
        assert place_name(whole) == "00:00:01-00:02:01"
