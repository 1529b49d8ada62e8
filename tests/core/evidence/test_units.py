"""What arrives of tables and code: with head, lead-in and indent, in every format."""

import numpy as np
import pytest

from precise_rag import Candidate
from precise_rag.evidence import EvidenceExtractor
from precise_rag.selection import ProbabilitySelector
from precise_rag.titles import joined_titles, new_sections


class ScoreByWord:
    """Gives 0.9 to sentences with the word, and nothing to the others."""

    name, score_scale, is_calibrated = "by word", "probability", True

    def __init__(self, word: str) -> None:
        self.word = word

    def score(self, query, candidates):
        return np.array([0.9 if self.word in c.text else 1e-6 for c in candidates], dtype=np.float32)


def read(text: str, word: str) -> list[str]:
    """What a model reads of a text: each excerpt below what stands above it."""
    selector = ProbabilitySelector(min_score=0.5, min_keep=0)
    whole = Candidate("d", 0, len(text), text, 0.5, "cosine")
    excerpts = EvidenceExtractor(ScoreByWord(word), selector).extract("Which one?", [whole]).excerpts
    assert all(text[one.start : one.end] == one.text for one in excerpts)
    return [
        f"{joined_titles(titles)}\n{one.text}".strip("\n")
        for one, titles in zip(excerpts, new_sections(excerpts), strict=True)
    ]


LONG = "of willow and of oak, as they were made at the river for as long as anyone can think back"
ROWS = [f"item{row}" for row in range(12)]
GRID_LINE = f"+--------+{'-' * (len(LONG) + 2)}+"

TABLES = {
    "markdown": "| Name | Made |\n|---|---|\n" + "".join(f"| {name} | {LONG} |\n" for name in ROWS),
    "html": "<table><tr><th>Name</th><th>Made</th></tr>\n"
    + "".join(f"<tr><td>{name}</td><td>{LONG}</td></tr>\n" for name in ROWS)
    + "</table>\n",
    "grid": f"{GRID_LINE}\n| Name   | {'Made':{len(LONG)}} |\n{GRID_LINE.replace('-', '=')}\n"
    + "".join(f"| {name:6} | {LONG} |\n{GRID_LINE}\n" for name in ROWS),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_row_of_a_long_table_carries_the_head_once(name: str) -> None:
    (shown,) = read(TABLES[name], "item7")
    assert shown.count("Name") == shown.count("Made") == 1
    assert "Name | Made" in shown.splitlines()[0]
    assert "item7" in shown
    assert LONG in shown
    assert "item3" not in shown


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("Run it so:\n\n    def lift(trap):\n        if trap:\n            return trap\n\nDone.\n", 4),
        ("Run it so::\n\n  >>> def lift(trap):\n  ...     return trap\n  >>> lift(1)\n  1\n\nDone.\n", 2),
        ("# Lift\n\nRun it so:\n\n```python\ndef lift(trap):\n    return trap\n```\n\nDone.\n", 0),
        ("<p>Run it so:</p>\n<pre>\ndef lift(trap):\n    return trap\n</pre>\n<p>Done.</p>\n", 0),
    ],
)
def test_code_is_sent_whole_with_its_indent_and_its_lead_in(text: str, block: int) -> None:
    shown = "\n".join(read(text, "lift(trap)"))
    assert "Run it so:" in shown
    lines = [line for line in shown.splitlines() if "return trap" in line or "def lift" in line]
    assert len(lines[0]) - len(lines[0].lstrip()) == block
    assert "return trap" in lines[-1]


@pytest.mark.parametrize(
    "text",
    [
        "OPTIONS\n       --all\n           Lift every trap.\n\n       --trap\n           Lift one trap.\n",
        "``--all``\n    Lift every trap.\n\n``--trap``\n    Lift one trap.\n",
        "<dl><dt>--all</dt><dd>Lift every trap.</dd>\n<dt>--trap</dt><dd>Lift one trap.</dd></dl>\n",
    ],
)
def test_an_option_is_sent_with_its_meaning(text: str) -> None:
    shown = "\n".join(read(text, "one trap"))
    assert "--trap" in shown
    assert "Lift one trap." in shown
