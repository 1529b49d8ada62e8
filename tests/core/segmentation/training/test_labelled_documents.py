from pathlib import Path

import pytest

from precise_rag.errors import InputError
from precise_rag.segmentation.training.labelled_documents import UNKNOWN, label_sections, read_labelled


def labels(sections: list[list[str]], unit: str | None = None) -> tuple[list[int], list[int]]:
    found = label_sections("x", "d", sections, unit)
    return found.paragraph.tolist(), found.section.tolist()


def test_labels_follow_paragraphs_and_sections_and_are_unknown_where_the_source_does_not_say() -> None:
    assert labels([["A one. B two.", "C three. D four."], ["E five. F six."]]) == (
        [0, 1, 0, 1, 0],
        [0, 0, 0, 1, 0],
    )
    assert labels([["A one. B two. C three.", "D four."]])[1] == [UNKNOWN] * 3
    assert labels([["A one.", "B two."], ["C three."]], "sentence") == ([UNKNOWN, 1], [0, 1])
    spoken = [
        ["He left. It was late.", '"Wait!" she said. He did not.', "Rain fell. Wind blew."],
        ["End. It is."],
    ]
    assert labels(spoken)[0] == [0, UNKNOWN, 0, UNKNOWN, 0, 1, 0]
    assert labels([["Yes.", "No.", "Why?"], ["Next. Item."]]) == ([UNKNOWN] * 4, [0, 0, 1, 0])


def test_read_labelled_reads_every_format(tmp_path: Path, toy_file: Path) -> None:
    (tmp_path / "a.txt").write_text("One one. Two two.\r\n \r\nThree three.")
    (tmp_path / "b.jsonl").write_text('{"text": "One one.\\n\\nTwo two. Three.", "lang": "de"}\n')
    text, record = read_labelled(tmp_path)
    assert (text.id, text.domain, text.paragraph.tolist()) == ("a.txt", "txt", [0, 1])
    assert (record.id, record.domain, record.paragraph.tolist()) == ("b.jsonl#1", "multilingual", [1, 0])
    toys = list(read_labelled(toy_file))
    assert (len(toys), toys[0].domain, len(toys[0].sentences)) == (60, "toy", 18)
    (tmp_path / "c.jsonl").write_text('{"title": "no text"}\n')
    with pytest.raises(InputError, match="line 1"):
        list(read_labelled(tmp_path))
    with pytest.raises(InputError, match="there is no file or folder"):
        list(read_labelled(tmp_path / "none"))


@pytest.mark.parametrize(
    "written", [b"\xff\xfe\x00", b"a\0b", b"[" * 50_000, b"[1]", b'{"sections": [1]}'], ids=range(5)
)
def test_a_file_that_is_no_list_of_records_is_named(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "bad.jsonl").write_bytes(written)
    with pytest.raises(InputError, match=r"bad\.jsonl"):
        list(read_labelled(tmp_path))
    (tmp_path / "bad.jsonl").unlink()
    with pytest.raises(InputError, match=r"contains no file that ends in \.txt"):
        list(read_labelled(tmp_path))
