import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.sentences import paragraph_ids, split_sentences
from precise_rag.sentences.block_spans import block_spans
from precise_rag.sentences.sentence_tables import tables_of
from precise_rag.structure import read_structure
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, Span
from support.documents import read_document

DOCUMENTS = [
    Document("a", "One cat.  Two dogs.\n\nThree owls."),
    Document("empty", ""),
    Document("b", "Two dogs. Four mice."),
]


def test_rows_are_the_sentences_in_order_encoded_if_vectors_are_wanted() -> None:
    encoder = HashEncoder()
    tables = [table for _, table in tables_of(iter(DOCUMENTS), encoder)]
    assert encoder.calls == ["One cat.", "Two dogs.", "Three owls.", "Four mice."], "each text once"
    assert [table.doc_id for table in tables] == ["a", "empty", "b"]
    assert [len(table) for table in tables] == [3, 0, 2]
    assert tables[0].paragraphs.tolist() == [0, 0, 1]
    assert tables[0].n_tokens.tolist() == [2, 2, 2]
    for document, table in zip(DOCUMENTS, tables, strict=True):
        assert [tuple(span) for span in table.spans.tolist()] == split_sentences(document.text)
        texts = [document.text[start:end].strip() for start, end in table.spans]
        assert table.vectors is not None
        np.testing.assert_allclose(table.vectors, HashEncoder().encode(texts), rtol=1e-6)
    encoder = HashEncoder()
    read = [table for _, table in tables_of(DOCUMENTS, encoder, vectors=False)]
    assert [table.vectors is None for table in read] == [True, False, True], "that of no sentence is empty"
    assert encoder.calls == []
    page = "<html><p>The <b class='x'>pump</b> &amp; <a href='y'>wheel</a> turn.</p><p>Ada left.</p></html>"
    next(tables_of([Document("html", page)], encoder))
    assert encoder.calls == ["The pump & wheel turn.", "Ada left."], "tags are not read"


def test_documents_are_read_two_batches_ahead() -> None:
    read = []

    def endless() -> object:
        number = 0
        while True:
            read.append(number)
            yield Document(str(number), "A short sentence here. " * 100)
            number += 1

    document, table = next(tables_of(endless(), HashEncoder()))  # type: ignore[arg-type]
    assert document.id == table.doc_id == "0"
    assert len(read) == 2 * 114  # two batches of 2**18 characters at 2,300 a document


@pytest.mark.slow
def test_an_error_in_the_other_thread_is_raised_and_closing_the_iterator_ends_that_thread() -> None:
    class Broken:
        name = "broken"

        def split(self, text: str) -> list[Span]:
            raise ValueError("no sentences")

    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="no sentences"):
        next(tables_of(DOCUMENTS, HashEncoder(), splitter=Broken()))
    tables = tables_of((Document(str(k), "A sentence. " * 9_000) for k in range(99)), HashEncoder())
    assert next(tables)[1].doc_id == "0"
    tables.close()  # type: ignore[attr-defined]
    assert before.issuperset(threading.enumerate())


def test_lines_of_contents_are_no_sentences_but_those_of_a_menu_are() -> None:
    menu = "".join(f"Pie {n} ..... {n + 3}\n\n" for n in range(9))
    for text, n_lines in ((read_document("lock_manual.txt"), 1), (menu, 9)):
        ((_, table),) = tables_of([Document("a", text)], HashEncoder())
        units = [text[start:end].replace(" ", "") for start, end in table.spans.tolist()]
        assert sum("...." in unit for unit in units) == n_lines


def blocks(text: str) -> list[str]:
    return [text[start:end] for (start, end), _ in block_spans(text, read_structure(text))]


def test_blocks_end_at_blank_lines_headings_list_items_and_rows_with_their_wrapped_cells() -> None:
    parts = ["# Title\n", "One.\n\n", "Two:\n", "- a\n", "- b\n\n", "| x | y |\n|---|---|\n| 1 | 2 |"]
    assert blocks("".join(parts)) == parts
    rule = "+--------+----------+\n"
    rows = [f"| part {number:2}| turns    |\n|        | slowly   |\n{rule}" for number in range(20)]
    assert blocks(rule + "| Name   | Meaning  |\n+========+==========+\n" + "".join(rows))[1:] == rows


def test_long_code_is_split_between_stanzas_and_a_long_stanza_between_lines() -> None:
    stanza = "def f():\n" + "    call(argument)\n" * 15 + "\n"
    code = "```\n" + stanza * 4 + "```\n"
    assert blocks(code) == ["```\n" + stanza, stanza, stanza, stanza + "```\n"]
    for unit, most in (("x = 1\n\n", 400), ("    argument=1,\n", 500)):
        long = "```\n" + unit * 100 + "```\n"
        found = blocks(long)
        assert "".join(found) == long
        assert 1 < len(found) < 10
        assert all(part.endswith(unit) and len(part) <= most for part in found[:-1])


def test_a_blank_line_begins_a_paragraph() -> None:
    text = "\n\nOne. Two.\n\nThree.\n \t\nFour.\nFive.\r\n\r\nSix."
    spans = split_sentences(text)
    assert paragraph_ids(text, spans).tolist() == [0, 0, 1, 2, 2, 3]
    assert paragraph_ids(text, [Span(0, 6), Span(16, 20)]).tolist() == [0, 1]
    assert paragraph_ids("", []).tolist() == []


@given(st.text(st.sampled_from(" \n\r\t.#-|1aB\u2029") | st.characters(), max_size=200))
def test_paragraph_numbers_ascend_from_0(text: str) -> None:
    ids = paragraph_ids(text, split_sentences(text)).tolist()
    assert ids[:1] in ([], [0])
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(ids))
