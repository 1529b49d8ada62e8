import gzip
import json

import pytest

from precise_rag import Document
from precise_rag.documents import read_documents
from precise_rag.errors import InputError


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

    assert first == Document("x", "Plain.", {"title": "X"})
    assert (second.id, second.text) == ("docs.jsonl.gz#2", "One.\n\nTwo.\n\nThree.")


def test_an_empty_file_is_a_document_without_text(tmp_path):
    (tmp_path / "empty.txt").touch()
    assert [document.text for document in read_documents(tmp_path)] == [""]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"caf\xe9", "not UTF-8"),
        ("a.txt", b"a\0b", "binary"),
        ("a.pdf", b"%PDF", "cannot read this kind"),
        ("a.jsonl.gz", b"no gzip", "gzip"),
        ("a.jsonl", b'{"id": "x", "text"', "line 1: not valid JSON"),
        ("a.jsonl", b"\n[1]", "line 2: expected a JSON object"),
        ("a.jsonl", b'{"id": "x"}', 'needs a string "text"'),
        ("a.jsonl", b'{"id": "x", "text": "1"}\n{"id": "x", "text": "2"}', "occurs twice"),
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
