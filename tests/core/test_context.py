from dataclasses import replace

from precise_rag.context import Passage, context_passages, shown_passages, source_of
from precise_rag.excerpts import Order
from precise_rag.types import Candidate, Selection

TEXT = "The mill is old. Ada built it.\n\nIt grinds rye. The yard is empty."


def piece(text: str, score: float, doc_id: str = "mill", **metadata: object) -> Candidate:
    start = TEXT.index(text)
    return Candidate(doc_id, start, start + len(text), text, score, "probability", metadata=metadata)


def passages(*pieces: Candidate, order: Order = "document") -> tuple[Passage, ...]:
    kept = sorted(pieces, key=lambda piece: -piece.score)
    return context_passages(Selection.keep_all(kept, "kept"), order)


def test_passages_are_the_excerpts_with_a_number_in_order() -> None:
    best, other = piece("The yard is empty.", 0.9), piece("Ada built it.", 0.2, "b", pages=[0])
    first, second = passages(best, other)
    assert (first.number, first.doc_id, first.text, first.pieces) == (1, "mill", best.text, (best,))
    assert (second.number, second.start, second.end) == (2, other.start, other.end)
    assert second.metadata == {"pages": [0]}
    kept = [piece("Ada built it.", 0.9), piece("The mill is old.", 0.8)]
    assert [p.text for p in passages(*kept, order="score")] == ["Ada built it.", "The mill is old."]


def test_a_heading_is_shown_where_another_one_begins_and_a_long_source_keeps_its_innermost() -> None:
    kept = [
        piece("The mill is old.", 0.9, title="Mills", header_path=["Old mills"]),
        piece("It grinds rye.", 0.8, title="Mills", header_path=["Old mills"]),
        piece("The yard is empty.", 0.7, "other"),
    ]
    assert shown_passages(passages(*kept)) == [
        ("The mill is old.", "Mills > Old mills"),
        ("It grinds rye.", ""),
        ("The yard is empty.", "untitled"),
    ]
    assert shown_passages(passages(piece("It grinds rye.", 0.8))) == [("It grinds rye.", "")]
    known = replace(piece("It grinds rye.", 0.9, title="Mills"), above=("Mills", "Grain"))
    assert shown_passages(passages(known)) == [("It grinds rye.", "Mills > Grain")]
    named = source_of(("x" * 300, "Oil"))
    assert len(named) == 200
    assert named.endswith("x > Oil")
