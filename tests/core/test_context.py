from dataclasses import replace

import numpy as np
import pytest

from precise_rag import split_sentences
from precise_rag.context import context_passages, shown_passages, source_of
from precise_rag.sentences.words import trim_spans
from precise_rag.types import Candidate

TEXT = "The mill is old. Ada built it.\n\nIt grinds rye. The yard is empty."


def piece(text: str, score: float, doc_id: str = "mill", **metadata: object) -> Candidate:
    start = TEXT.index(text)
    return Candidate(doc_id, start, start + len(text), text, score, "probability", metadata=metadata)


def test_pieces_are_read_in_the_documents_order_and_neighbours_are_joined() -> None:
    kept = [piece("It grinds rye.", 0.9), piece("The mill is old.", 0.8), piece("Ada built it.", 0.7)]
    (whole,) = context_passages(kept)
    assert whole.text == TEXT[: whole.end]
    assert (whole.start, whole.end, whole.number) == (0, TEXT.index(" The yard"), 1)
    assert [p.start for p in whole.pieces] == sorted(p.start for p in kept)


@pytest.mark.parametrize(
    "text",
    [
        "It has:\n- a wheel\n- a stone",
        "1. Open the gate.\n2. Let the water in.",
        "## The wheel\nIt turns.",
        "| part | age |\n| --- | --- |\n| wheel | 9 |\n\nIt turns.",
        "```sh\ngrind rye\n```\nThen wait.",
        "Ada: Is it old?\nBen: It is.",
        "It is old. It grinds rye - still.",
    ],
)
def test_joined_pieces_keep_the_lines_of_the_document(text: str) -> None:
    spans = trim_spans(text, np.array(split_sentences(text))).tolist()
    pieces = [Candidate("d", start, end, text[start:end], 0.5, "probability") for start, end in spans]
    assert len(pieces) > 1
    assert [passage.text for passage in context_passages(pieces)] == [text]


def test_what_lies_apart_stays_apart() -> None:
    first, second = context_passages([piece("The yard is empty.", 0.9), piece("Ada built it.", 0.2)])
    assert (first.text, second.text) == ("Ada built it.", "The yard is empty.")
    assert (first.number, second.number) == (1, 2)


def test_overlapping_pieces_are_shown_once() -> None:
    kept = [piece("Ada built it.\n\nIt grinds rye.", 0.9), piece("The mill is old. Ada built it.", 0.5)]
    (whole,) = context_passages(kept)
    assert whole.text == TEXT[: whole.end]
    assert context_passages([kept[0], piece("It grinds rye.", 0.4)])[0].text == kept[0].text


def test_offsets_that_do_not_fit_the_texts_join_nothing() -> None:
    odd = [Candidate("d", 0, 9, text, 0.5, "cosine") for text in ("one thing", "other one")]
    assert [p.text for p in context_passages(odd)] == ["one thing", "other one"]


def test_the_document_with_the_best_piece_comes_first() -> None:
    kept = [piece("Ada built it.", 0.9, "b"), piece("The mill is old.", 0.8, "a")]
    kept.append(piece("The yard is empty.", 0.1, "b"))
    assert [p.doc_id for p in context_passages(kept)] == ["b", "b", "a"]
    assert [p.doc_id for p in context_passages(kept, "score")] == ["b", "a", "b"]


def test_score_order_joins_nothing() -> None:
    kept = [piece("Ada built it.", 0.9), piece("The mill is old.", 0.8)]
    assert [p.text for p in context_passages(kept, "score")] == ["Ada built it.", "The mill is old."]


def test_a_heading_is_shown_where_another_one_begins() -> None:
    kept = [
        piece("The mill is old.", 0.9, title="Mills", header_path=["Old mills"]),
        piece("It grinds rye.", 0.8, title="Mills", header_path=["Old mills"]),
        piece("The yard is empty.", 0.7, "other"),
    ]
    assert shown_passages(context_passages(kept)) == [
        ("The mill is old.", "Mills > Old mills"),
        ("It grinds rye.", ""),
        ("The yard is empty.", "untitled"),
    ]
    assert shown_passages(context_passages([piece("It grinds rye.", 0.8)])) == [("It grinds rye.", "")]


def test_what_the_index_knows_of_a_section_is_shown() -> None:
    oil = replace(piece("It grinds rye.", 0.9, title="Mills"), above=("Mills", "Grain"))
    assert shown_passages(context_passages([oil])) == [("It grinds rye.", "Mills > Grain")]


def test_a_long_source_keeps_its_innermost_heading() -> None:
    named = source_of(("x" * 300, "Oil"))
    assert len(named) == 200
    assert named.endswith("x > Oil")
