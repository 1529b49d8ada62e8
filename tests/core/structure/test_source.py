"""Source code: what its definitions stand above, and that values are never parted from their names."""

import pytest

from precise_rag import split_sentences
from precise_rag.structure import read_structure
from support.documents import read_cases, read_document

PYTHON, TYPESCRIPT, GO, SQL = map(read_document, ("timers.py.txt", "uploader.ts", "mux.go", "account.sql"))


@pytest.mark.parametrize(("name", "words", "above"), read_cases("structure.json", "definitions"))
def test_a_definition_stands_above_its_body_and_its_comment(name, words, above) -> None:
    text = read_document(name)
    structure = read_structure(text)
    assert structure.format == "source"
    assert list(structure.above(text.index(words))) == above


@pytest.mark.parametrize("text", [PYTHON, TYPESCRIPT, f"\n\n{GO}", SQL])
def test_lines_of_code_are_never_cut(text: str) -> None:
    assert read_structure(text).blocks[0].start == 0
    for start, end in split_sentences(text):
        unit, line = text[start:end], text[text.rfind("\n", 0, start) + 1 : start]
        assert not line.strip(' \t/*#-"') or line.split()[0] in ('"""Counts', '"""Wait', "//", "@param"), unit
    units = [text[start:end].strip() for start, end in split_sentences(text)]
    assert text is not PYTHON or any(one.startswith("class Timer:\n") and "Counts" in one for one in units)


@pytest.mark.parametrize("text", read_cases("structure.json", "no source code"))
def test_settings_prose_and_pages_with_code_are_not_source_code(text: str) -> None:
    assert read_structure(text).format != "source"


def test_long_code_is_cut_before_its_least_indented_lines_and_comments_between_sentences() -> None:
    call = '    add(\n        "--{0}",\n        help="Wait {0}. Then leave.",\n        env="{0}",\n    )\n'
    code = "def options(add):\n" + "".join(map(call.format, ("a" * 40, "b" * 40, "c" * 40, "d" * 40)))
    units = [code[start:end] for start, end in split_sentences(f"{code}    return add\n")]
    assert all(one.count("add(\n") == one.count("    )\n") for one in units[1:])
    lines = "".join(
        f" * Boat {number} leaves when all\n * have come. Then it\n * is gone.\n" for number in range(3)
    )
    comment = (
        f"/**\n{lines} */\nint leave(int boat) {{\n  int left = boat;\n  left += 1;\n  return left;\n}}\n"
    )
    assert comment[slice(*split_sentences(comment)[1])] == "Then it\n * is gone.\n * "
