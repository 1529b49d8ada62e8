"""How the structure of a text ties neighbouring sentences together, or parts them.

    heading | what follows it        lead-in | its list, table or code        caption | its table
    row | row, line | line           item | item of one list          front matter | what follows it
    sentence | sentence of one paragraph, item or turn        definition | its body        key | what is below

The running heads and feet of pages are looked through: what stands before and after them is tied as if they
were not there, and they go with what follows.

The weights are log-odds, like the model's own, and are subtracted from the gain of a cut.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np

from precise_rag.structure import Block, Structure
from precise_rag.structure.blocks import BlockKind, shared
from precise_rag.structure.marks import CAPTION, NUMBERED_TITLE, ends_in_colon, ends_sentence
from precise_rag.structure.running import running_lines
from precise_rag.types import BoolArray, FloatArray, IntArray, Titles

NEVER = 1000.0
"""Tie after a heading or a lead-in, and within a line of source code: only a length limit cuts there."""
_INSIDE = {"table": 12.0, "code": 12.0, "item": 3.0, "quote": 2.0, "turn": 1.5, "paragraph": 1.5}
_INSIDE["heading"] = NEVER
_TABLE_HEAD = 200.0
_BESIDE = {"item": 2.0, "turn": 2.0}
_SHORT_LIST = 8.0
_FRONT_MATTER = "---"
_BEFORE_CODE = 4.0
_BEFORE_HEADING = -3.0
_LEVEL = 6.0  # for each level of nested data or code
_OPEN_ENDED = ("paragraph", "item", "quote", "turn")


def is_kind(structure: Structure, numbers: IntArray, kind: str) -> BoolArray:
    """Return (n,) whether each sentence is in a block of a kind. numbers: (n,) block of each sentence."""
    return np.array([block.kind == kind for block in structure.blocks], dtype=np.bool_)[numbers]


def structure_ties(
    sentences: Sequence[str], numbers: IntArray, structure: Structure, n_tokens: IntArray, max_tokens: int
) -> FloatArray:
    """Return the (n - 1,) ties between n sentences: high where a cut would look wrong to a reader.

    sentences: their texts. numbers: (n,) block of each sentence. n_tokens: (n,) their tokens.
    max_tokens: limit of a chunk; a list of at most three quarters of it stays whole.
    """
    places = numbers.tolist()
    kinds = [structure.blocks[place].kind for place in places]
    ties = np.full(max(len(places) - 1, 0), NEVER, dtype=np.float32)
    sizes = Counter(places)
    alone = [row for row, place in enumerate(places) if sizes[place] == 1 and kinds[row] == "paragraph"]
    running = {alone[n] for n in np.flatnonzero(running_lines([sentences[row] for row in alone]))}
    rows = [row for row in range(len(places)) if row not in running]
    short = _short_lists(rows, kinds, n_tokens, max_tokens * 3 // 4) if "item" in kinds else set()
    is_new = True
    for row, following in pairwise(rows):
        before, after = structure.blocks[places[row]], structure.blocks[places[following]]
        if _leads_on(sentences[row], sentences[following], before, after, following > row + 1):
            ties[row] = NEVER
        elif row in short and following in short:
            ties[row] = _SHORT_LIST
        elif structure.format == "source" and not sentences[row].endswith(("\n", "\r")):
            ties[row] = NEVER
        elif places[row] == places[following]:
            ties[row] = _TABLE_HEAD if is_new and before.kind == "table" else _INSIDE[before.kind]
        elif structure.format in ("data", "source"):
            above, then_above = structure.above(before.start), structure.above(after.start)
            ties[row] = _nested(sentences[row].lstrip(), above, sentences[following].lstrip(), then_above)
        else:
            ties[row] = _between(before, after)
        is_new = places[row] != places[following]
    if structure.format == "markdown" and kinds[0] == "code" and sentences[0].startswith(_FRONT_MATTER):
        ties[: int(np.searchsorted(numbers, 1))] = NEVER
    return ties


def _leads_on(sentence: str, following: str, before: Block, after: Block, is_new_page: bool) -> bool:
    """Whether a sentence is a lead-in, title or caption of the next one, or goes on in it on a new page."""
    if before.kind not in _OPEN_ENDED:
        return False
    return (
        ends_in_colon(sentence)
        or NUMBERED_TITLE.fullmatch(sentence) is not None
        or (after.kind == "table" and CAPTION.match(sentence) is not None)
        or (is_new_page and following.lstrip()[:1].islower() and not ends_sentence(sentence))
    )


def _short_lists(rows: Sequence[int], kinds: Sequence[BlockKind], n_tokens: IntArray, most: int) -> set[int]:
    """The rows of all lists of at most `most` tokens."""
    groups = groupby(rows, key=lambda row: kinds[row] == "item")
    lists = [list(members) for is_list, members in groups if is_list]
    return {row for one in lists if n_tokens[one[0] : one[-1] + 1].sum() <= most for row in one}


def _nested(sentence: str, above: Titles, following: str, then_above: Titles) -> float:
    """A tie in data or source code: what is above both counts, and a definition keeps its comment."""
    if following.startswith(above[-1:]) or sentence.startswith(then_above[-1:]):
        return NEVER
    return _LEVEL * len(shared(above, then_above))


def _between(before: Block, after: Block) -> float:
    if before.kind == "heading":
        return NEVER
    if after.kind == "heading":
        return _BEFORE_HEADING
    if before.kind == after.kind in _BESIDE:
        return _BESIDE[after.kind]
    return _BEFORE_CODE if after.kind in ("code", "table") else 0.0
