"""Every database keeps the contract of searches and changes."""

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest

from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.testing.index_contract import SearchContract
from precise_rag.types import Document

_NUMBERS = itertools.count()


class TestLance(SearchContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        pytest.importorskip("lancedb")
        self.folder = tmp_path

    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DatabaseIndex:
        location = self.folder / f"{next(_NUMBERS)}.lance"
        return DatabaseIndex.build(documents, encoder, location=location, precision="float32")


class TestPostgres(SearchContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres: str) -> None:
        self.server = postgres

    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DatabaseIndex:
        location = f"{self.server}&collection=test_{next(_NUMBERS)}"
        return DatabaseIndex.build(documents, encoder, location=location, precision="float32")
