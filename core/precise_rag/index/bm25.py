"""BM25 over chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from precise_rag.index.arrays.bm25_matrix import BM25Matrix, BM25Settings, bm25_matrix
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.words import Lexicon
from precise_rag.index.base import Hits, View
from precise_rag.index.chunk_base import ChunkIndex, ChunkSettings
from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray, ScoreScale, SentenceTable


@dataclass(frozen=True, kw_only=True)
class ChunkBM25Settings(ChunkSettings, BM25Settings):
    """Chunks and BM25's own two numbers."""

    def __post_init__(self) -> None:
        ChunkSettings.__post_init__(self)
        BM25Settings.__post_init__(self)


class BM25Index(ChunkIndex):
    """Chunks by Okapi BM25; one without a word of the query is never returned. Needs no encoder."""

    kind = "bm25"
    settings_type: ClassVar[type] = ChunkBM25Settings
    score_scale: ClassVar[ScoreScale] = "bm25"
    needs_encoder = False

    def __init__(self, encoder: Encoder | None = None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self._lexicon = Lexicon(self.settings.stop_words)

    def _describe(self, texts: Sequence[str], table: SentenceTable, groups: Groups) -> Columns:
        return self._lexicon.columns(texts)

    def _prepare(self, collection: Collection) -> Any:
        ready = self._saved(collection, "chunks")
        return bm25_matrix(collection.columns, len(self._lexicon), self.settings, ready=ready)

    def _hits(self, view: View, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        scores = view.prepared.scores(self._lexicon.terms(query))
        rows = top_rows(scores, top_k)
        return Hits.of(rows[scores[rows] > 0], scores, {"bm25": scores})

    def _manifest(self) -> dict[str, Any]:
        return {**super()._manifest(), "vocabulary": self._lexicon.words()}

    def _extras(self) -> Columns:
        if not len(self._collection):
            return {}
        prepared: BM25Matrix = self._ready(top_k=1).prepared
        return {f"chunks.{name}": array for name, array in prepared.arrays.items()}

    def _restore(self, manifest: Mapping[str, Any], extras: Columns) -> None:
        self._lexicon = Lexicon(self.settings.stop_words, manifest["vocabulary"])
