"""A database keeps the contract of searches and changes."""

from collections.abc import Callable, Iterable

import pytest

from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.testing.index_contract import SearchContract
from precise_rag.types import Document


class TestDatabaseIndex(SearchContract):
    @pytest.fixture(autouse=True)
    def _database(self, new_location: Callable[[], str]) -> None:
        self.new_location = new_location

    def build(self, documents: Iterable[Document], encoder: HashEncoder) -> DatabaseIndex:
        return DatabaseIndex.build(documents, encoder, location=self.new_location(), precision="float32")
