"""Every database keeps the contract of searches and changes."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import pytest

from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.testing.index_contract import SearchContract
from precise_rag.types import Document
from support.databases import new_location


class _DatabaseContract(SearchContract):
    engine: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _database(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self.location = new_location(self.engine, request, tmp_path)

    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DatabaseIndex:
        return DatabaseIndex.build(documents, encoder, location=self.location(), precision="float32")


class TestLance(_DatabaseContract):
    engine = "lance"


class TestPostgres(_DatabaseContract):
    engine = "postgres"


class TestQdrant(_DatabaseContract):
    engine = "qdrant"
    counts_are_of_one_state = False
