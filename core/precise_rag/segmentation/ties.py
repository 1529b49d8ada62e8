"""How the structure of a text ties neighbouring sentences together, or parts them.

    heading | what follows it        lead-in | its list, table or code        caption | its table
    row | row, line | line           item | item of one list
    sentence | sentence of one paragraph, item or turn

The weights are log-odds, like the model's own, and are subtracted from the gain of a cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from precise_rag.structure import Block, Structure
from precise_rag.structure.marks import CAPTION, ends_in_colon
from precise_rag.types import FloatArray, IntArray

NEVER = 1000.0
"""Tie after a heading or a lead-in: only a length limit cuts there."""

_INSIDE = {"table": 12.0, "code": 12.0, "item": 3.0, "quote": 2.0, "turn": 1.5, "paragraph": 1.5}
_TABLE_HEAD = 200.0
_ITEMS = 2.0
_TURNS = 2.0
_BEFORE_CODE = 4.0
_BEFORE_HEADING = -3.0
_OPEN_ENDED = ("paragraph", "item", "quote", "turn")


def is_kind(structure: Structure, numbers: IntArray, kind: str) -> npt.NDArray[np.bool_]:
    """Return (n,) whether each sentence is in a block of a kind. numbers: (n,) block of each sentence."""
    kinds = np.array([block.kind == kind for block in structure.blocks], dtype=np.bool_)
    found: npt.NDArray[np.bool_] = kinds[numbers]
    return found


def structure_ties(sentences: Sequence[str], numbers: IntArray, structure: Structure) -> FloatArray:
    """Return the (n - 1,) ties between n sentences: high where a cut would look wrong to a reader.

    sentences: their texts. numbers: (n,) block of each sentence.
    """
    places = numbers.tolist()
    ties = np.zeros(max(len(places) - 1, 0), dtype=np.float32)
    is_new = True
    for gap, (left, right) in enumerate(pairwise(places)):
        before, after = structure.blocks[left], structure.blocks[right]
        if left == right:
            ties[gap] = _TABLE_HEAD if is_new and before.kind == "table" else _inside(before)
        else:
            ties[gap] = _between(before, after)
        if before.kind in _OPEN_ENDED and (
            ends_in_colon(sentences[gap]) or (after.kind == "table" and CAPTION.match(sentences[gap]))
        ):
            ties[gap] = NEVER
        is_new = left != right
    return ties


def _inside(block: Block) -> float:
    return NEVER if block.kind == "heading" else _INSIDE[block.kind]


def _between(before: Block, after: Block) -> float:
    if before.kind == "heading":
        return NEVER
    if after.kind == "heading":
        return _BEFORE_HEADING
    if before.kind == after.kind == "item":
        return _ITEMS
    if before.kind == after.kind == "turn":
        return _TURNS
    return _BEFORE_CODE if after.kind in ("code", "table") else 0.0
