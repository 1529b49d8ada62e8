"""The questions about documentation, and what a prompt is worth."""

from collections import Counter

import pytest

from benchmarks.adoption.documentation import Asked, plain, read_questions, write_documents
from benchmarks.adoption.prompts import Piece, Sent, measured

TEXT = "# Pump\n\n| part | age |\n|---|---|\n| wheel | 9 |\n\nIt turns <b>left</b>."


def test_each_question_is_answered_by_its_document(tmp_path) -> None:
    asked = list(read_questions())
    assert len(asked) >= 60
    assert len({one.question for one in asked}) == len(asked)
    assert {"code", "table", "list", "definition", "option", "prose"} == set(Counter(o.kind for o in asked))
    names = set(write_documents(tmp_path)) - {n for n in write_documents(tmp_path) if n.startswith("python/")}
    texts = {name: plain((tmp_path / name).read_text("utf-8")) for name in names}
    for one in asked:
        if one.document in names:  # the topics of Python's help differ from version to version
            assert all(plain(passage) in texts[one.document] for passage in one.answer), one.question


def test_tags_white_space_and_bars_do_not_count() -> None:
    assert plain("| wheel |\n 9 |") == plain("wheel 9") == "wheel9"
    assert plain("It turns <b>left</b>.\n") == plain("It turns left.")


def sent(*texts: str) -> Sent:
    pieces = [Piece("pump.md", text, text) for text in texts]
    return Sent(pieces, "\n\n".join(texts), 12)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("| wheel | 9 |", "# Pump"), (0, 0, 0, 2, 1, 0)),
        (("It turns <b>left</b>.", "| part | age |\n|---|---|\n| wheel | 9 |"), (1, 1, 0, 2, 1, 0)),
        (("| part | age |", "| wheel | 9 |"), (1, 0, 0, 2, 1, 1)),
        (("| part | age |\n|---|---|\n| wheel | 9 |\n\nIt turns",), (1, 1, 1, 1, 0, 0)),
        (("part age wheel 9",), (1, 1, 1, 0, 0, 0)),
        ((), (0, 0, 0, 0, 0, 0)),
    ],
)
def test_what_a_prompt_is_worth(texts: tuple[str, ...], expected: tuple[int, ...]) -> None:
    asked = Asked("pump.md", "table", "How old is the wheel?", ("part | age", "wheel | 9"))
    found = measured(sent(*texts), asked, {"pump.md": TEXT})
    keys = ("prompt", "one piece", "first", "verbatim", "beside", "in order")
    assert tuple(found[key] for key in keys) == expected
    assert found["tokens"] == 12
    assert found["pieces"] == len(texts)
