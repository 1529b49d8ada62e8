"""The BM25 matrices of a saved index are loaded, not computed again."""

from pathlib import Path

import bm25s
import pytest

from precise_rag.index import (
    BM25Index,
    DocumentIndex,
    HybridIndex,
)
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]
NEW = [Document(f"new{i}", f"A new dog number {i} barks. It runs.") for i in range(30)]


@pytest.mark.parametrize("kind", [BM25Index, HybridIndex])
def test_the_words_of_a_saved_index_are_not_weighed_again(
    kind: type[DocumentIndex], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = kind.build(OLD + NEW, HashEncoder())
    index.save(tmp_path / "index")
    calls = []
    whole = bm25s.BM25.index

    def counted(*arguments: object, **options: object) -> None:
        calls.append(arguments)
        whole(*arguments, **options)

    monkeypatch.setattr(bm25s.BM25, "index", counted)
    loaded = kind.load(tmp_path / "index", HashEncoder())
    assert loaded.search("old cat sleeps", 9) == index.search("old cat sleeps", 9)
    assert not calls
    loaded.delete(["old3"])
    rest = kind.build([d for d in OLD + NEW if d.id != "old3"], HashEncoder())
    assert loaded.search("old cat sleeps", 9) == rest.search("old cat sleeps", 9)
    assert calls
