"""Question sets as token ids, in compact files: sentences in passages, questions and their evidence."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from precise_rag.types import IntArray


class Texts(NamedTuple):
    """Token ids of n texts without special tokens: text i has ids[offsets[i]:offsets[i + 1]]."""

    ids: IntArray
    offsets: IntArray

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> "Texts":
        """Join lists of token ids."""
        offsets = np.cumsum([0, *map(len, rows)])
        ids = np.fromiter((token for row in rows for token in row), dtype=np.uint16, count=int(offsets[-1]))
        return cls(ids, offsets.astype(np.int32))

    def __getitem__(self, row: int) -> list[int]:  # type: ignore[override]
        found: list[int] = self.ids[self.offsets[row] : self.offsets[row + 1]].tolist()
        return found

    def count(self) -> int:
        """Return the number of texts."""
        return len(self.offsets) - 1


class Pack(NamedTuple):
    """A question set.

    sentences: of all documents, in order. passages: (p + 1,) first sentence of each passage, and the end.
    documents: (p,) document of each passage. questions, typed: n questions as they were written, and as
    somebody might type them. evidence: (m, 2) question and sentence that holds a part of its evidence,
    ordered by question. near: (n, k) passages that share words with the question and hold no evidence;
    -1 where there are fewer. alone: whether the questions make sense in their own document only.
    """

    sentences: Texts
    passages: IntArray
    documents: IntArray
    questions: Texts
    typed: Texts
    evidence: IntArray
    near: IntArray
    alone: bool

    def save(self, path: Path) -> None:
        """Write the file."""
        texts = {
            f"{name}_{part}": array
            for name in ("sentences", "questions", "typed")
            for part, array in getattr(self, name)._asdict().items()
        }
        rest = {name: getattr(self, name) for name in ("passages", "documents", "evidence", "near", "alone")}
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.savez_compressed(file, **texts, **rest)
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Pack":
        """Read a file."""
        with np.load(path) as file:
            texts = {
                name: Texts(file[f"{name}_ids"], file[f"{name}_offsets"])
                for name in ("sentences", "questions", "typed")
            }
            rest = {name: file[name] for name in ("passages", "documents", "evidence", "near")}
            return cls(**texts, **rest, alone=bool(file["alone"]))
