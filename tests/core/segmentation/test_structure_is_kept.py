"""No chunk ends in a heading or lead-in, and none is a crumb, where the limits allow: counted by format."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from precise_rag import Segmenter
from support.documents import read_cases, read_document


def words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


LIMITS = ((128, None), (256, None), (1024, None), (150, words))
HEADING_ENDS: dict[str, Callable[[str], bool]] = {
    "eel_traps.md": lambda end: re.match(r"#{1,6} |\*\*[^*]+\*\*$", end.splitlines()[-1]) is not None,
    "ropes.rst": lambda end: re.match(r"([=~*^-])\1{2,}$", end.splitlines()[-1].strip()) is not None,
    "piers.html": lambda end: re.search(r"</h[1-6]>$", end) is not None,
    "agreement.txt": lambda end: (
        re.match(r"\d+(\.\d+)*\.? [A-Z][\w ]{2,40}$|[A-Z ]{4,40}$", end.splitlines()[-1]) is not None
    ),
    "harbour_talk.txt": lambda end: False,
    "annual_report.txt": lambda end: (
        re.match(r"\d\. Piers|Table \d:|=+$|Pier  ", end.splitlines()[-1]) is not None
    ),
    "printed_pages.txt": lambda end: (
        re.match(r"Brandt harbour, annual report|Page \d", end.splitlines()[-1]) is not None
    ),
}
"""Whether a chunk's last line is a heading, by the format's own marks and not by this library's reader."""


@pytest.mark.parametrize("name", HEADING_ENDS)
@pytest.mark.parametrize(("max_tokens", "count_tokens"), LIMITS)
def test_no_chunk_ends_in_a_heading_or_lead_in_and_none_is_a_crumb(
    name: str, max_tokens: int, count_tokens: Any
) -> None:
    """Whatever counts the tokens."""
    text = read_document(name)
    segmenter = Segmenter.from_pretrained("small", max_tokens=max_tokens, count_tokens=count_tokens)
    chunks = segmenter.segment(text)
    assert "".join(chunk.text for chunk in chunks) == text
    assert all(chunk.n_tokens <= max_tokens for chunk in chunks)
    for chunk in chunks[:-1]:
        end = chunk.text.rstrip()
        assert not HEADING_ENDS[name](end), end[-80:]
        last_words = re.sub(r"(?:</\w+>\s*)+$", "", end).rstrip("*_ ")
        assert not last_words.endswith(":"), end[-80:]
    assert all(chunk.n_tokens >= max_tokens // 16 for chunk in chunks)


def test_a_list_a_table_and_code_stay_whole_while_they_fit_and_headings_travel_with_chunks() -> None:
    text = read_document("eel_traps.md")
    found = Segmenter.from_pretrained("small", max_tokens=160).segment(text)
    chunks = [chunk.text for chunk in found]
    paths = [chunk.metadata.get("header_path", "/") for chunk in found]
    assert paths[0] == "/"
    assert all(path.startswith("/The eel traps of Brandt harbour/") for path in paths[1:])
    assert len(set(paths)) > 3
    for part in re.findall(r"```[^`]*```|(?:^\|.*\n)+|(?:^\d\. .*\n)+", text, re.MULTILINE):
        assert any(part in chunk for chunk in chunks), part


def test_a_long_table_is_cut_between_rows_and_long_code_between_lines() -> None:
    table = "| trap | eels |\n|---|---|\n" + "".join(f"| oak {i} | {i} |\n" for i in range(200))
    code = "```\n" + "".join(f"count_{i} = trap[{i}] + 1\n" for i in range(200)) + "```\n"
    for text in (f"# Eels\n\n{table}", f"# Eels\n\n{code}"):
        chunks = Segmenter.from_pretrained("small", max_tokens=100).segment(text)
        assert len(chunks) > 5
        assert all(chunk.text.endswith("\n") for chunk in chunks)
        assert chunks[0].text.count("\n") > 3


@pytest.mark.parametrize("max_tokens", [128, 256])
def test_the_head_of_a_page_parts_nothing(max_tokens: int) -> None:
    chunks = Segmenter.from_pretrained("small", max_tokens=max_tokens).segment(
        read_document("printed_pages.txt")
    )
    assert len(chunks) > 5
    assert all(chunk.text.rstrip().endswith(".") for chunk in chunks)
    assert not any("header_path" in chunk.metadata for chunk in chunks)


def test_the_model_reads_html_without_its_tags() -> None:
    parts = read_document("agreement.txt").split("\n\n")
    words = [part for part in parts if part.endswith(".") and part[0] != "-" and len(part) > 80]
    plain = Segmenter.from_pretrained("small").explain("\n\n".join(words))
    pages = "\n".join(f'<div class="a b"><p>{part}</p></div>' for part in words)
    marked = Segmenter.from_pretrained("small").explain(pages)
    assert marked.structure.format == "html"
    np.testing.assert_allclose(marked.scores, plain.scores, atol=0.2)
    assert marked.n_tokens.sum() > plain.n_tokens.sum() + 5 * len(words)


def test_a_short_list_and_front_matter_are_not_cut() -> None:
    steps = "\n".join(f"{number}. The keeper lifts trap {number} and counts." for number in range(1, 6))
    prose = "The traps are lifted at dawn. Oak lasts longer than willow. Nobody sells before noon. "
    before = f"---\ntitle: Eels\n---\n\n# Eels\n\n{prose}\n\nIt is done in this order:"
    text = f"{before}\n\n{steps}\n\n{prose * 2}"
    chunks = Segmenter.from_pretrained("small", max_tokens=120).segment(text)
    assert len(chunks) > 1
    assert any(steps in chunk.text for chunk in chunks)
    assert "The traps are lifted" in chunks[0].text


@pytest.mark.parametrize("after", ["\n\n", " ", "\n\nHarbour Office, {n}\n\n"])
def test_a_numbered_title_with_a_full_stop_stays_with_its_text(after: str) -> None:
    text = "".join(
        f"{n}.2 Care of the Lamps.{after.format(n=n)}The keeper trims the wick at dusk, fills the oil and "
        f"notes the hour in the book. {'The ferry waits until the lamp is lit. ' * (n % 4)}\n\n"
        for n in range(1, 30)
    )
    chunks = Segmenter.from_pretrained("small", max_tokens=90).segment(text)
    title_last = re.compile(r"Lamps\.(\s+Harbour Office, \d+)?\s*\Z")
    assert len(chunks) > 8
    assert not [chunk.text for chunk in chunks if title_last.search(chunk.text)]


def test_source_code_and_nested_data_are_cut_where_the_fewest_definitions_or_keys_go_on() -> None:
    parts = read_cases("structure.json", "repeated parts")
    code = "\n".join(map(parts["a function"].format, ("Eel", "Cod", "Carp", "Pike")))
    data = "".join(map(parts["a key"].format, range(9)))
    for text, starts, most in ((code, "/**\n", 130), (data, "server-", 150)):
        chunks = Segmenter.from_pretrained("small", max_tokens=most).segment(text)
        assert len(chunks) > 1
        assert [chunk.text for chunk in chunks if not chunk.text.startswith(starts)] == []
    *chunks, _ = Segmenter.from_pretrained("small", max_tokens=40).segment(code)
    assert [chunk.text for chunk in chunks if not chunk.text.endswith("\n")] == []
    text = (
        f"lamp:\n  oil:\n    kind: {'whale ' * 60}\n    from: {'far ' * 60}\nboat:\n  crew: {'Ann ' * 50}\n"
    )
    *_, last = Segmenter.from_pretrained("small", max_tokens=150).segment(text)
    assert ("boat" in last.text, last.metadata) == (True, {})
