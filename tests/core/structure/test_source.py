"""Source code: what its definitions stand above, and that values are never parted from their names."""

import pytest

from precise_rag import split_sentences
from precise_rag.structure import read_structure
from support.documents import read_document

PYTHON, TYPESCRIPT, GO, SQL = map(read_document, ("timers.py.txt", "uploader.ts", "mux.go", "account.sql"))


@pytest.mark.parametrize(
    ("text", "words", "above"),
    [
        (PYTHON, "Counts seconds", ("class Timer",)),
        (PYTHON, "step (float)", ("class Timer",)),
        (PYTHON, "self.step = step", ("class Timer", "def __init__( self, step: float = 0.5 ) -> None")),
        (PYTHON, "TimeoutError", ("class Timer", "def tick(self)")),
        (PYTHON, "return now", ("class Timer", "def tick(self)")),
        (PYTHON, "LIMIT = 40", ()),
        (TYPESCRIPT, "What an upload", ("export interface UploadOptions",)),
        (TYPESCRIPT, "retries?", ("export interface UploadOptions",)),
        (SQL, "PRIMARY", ("CREATE TABLE account",)),
        (
            TYPESCRIPT,
            "@throws",
            (
                "export class Uploader extends Base",
                "async send(path: string, options: UploadOptions): Promise<void>",
            ),
        ),
        (GO, "Router finds", ("type Router struct",)),
        (GO, "Match reports", ("func (r *Router) Match(req *http.Request) bool",)),
        (SQL, "People who", ("CREATE TABLE account",)),
        (SQL, "CREATE INDEX", ()),
    ],
)
def test_a_definition_stands_above_its_body_and_its_comment(text, words, above) -> None:
    structure = read_structure(text)
    assert structure.format == "source"
    assert structure.above(text.index(words)) == above


@pytest.mark.parametrize("text", [PYTHON, TYPESCRIPT, f"\n\n{GO}", SQL])
def test_lines_of_code_are_never_cut(text: str) -> None:
    assert read_structure(text).blocks[0].start == 0
    for start, end in split_sentences(text):
        unit, line = text[start:end], text[text.rfind("\n", 0, start) + 1 : start]
        assert not line.strip(' \t/*#-"') or line.split()[0] in ('"""Counts', '"""Wait', "//", "@param"), unit
    units = [text[start:end].strip() for start, end in split_sentences(text)]
    assert text is not PYTHON or any(one.startswith("class Timer:\n") and "Counts" in one for one in units)


@pytest.mark.parametrize(
    "text",
    [
        "[mail]\nport = 25\nhost = mail.example.org\n\n[web]\nport = 80\nroot = /srv\nindex = yes\n",
        "The class of 1911 met; they sang.\nIt rained;\nthe band played on;\nnobody left;\nall were glad.\n",
        "# Use\n\n```\ndef f(x):\n    return x\n```\n\nThen call it.\n",
        "Fields\n======\n\n.. code-block:: python\n\n   class A:\n       x = 1\n       y = 2\n       z = 3\n",
        "The keeper shall:\n(a) keep the type of oil (see 3) that the maker names for it;\n"
        "(b) record every visit of the inspector (a copy goes to the owner of the site);\n"
        "(c) class the waste by the list of the council;\n(d) pay the fee of each year before it begins;\n",
    ],
)
def test_settings_prose_and_pages_with_code_are_not_source_code(text: str) -> None:
    assert read_structure(text).format != "source"
