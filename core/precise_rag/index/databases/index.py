"""An index whose rows live in a database."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from precise_rag._pickling import Portable
from precise_rag.errors import EmptyIndexError, IndexFormatError, InputError
from precise_rag.filters import Filter, as_filter
from precise_rag.index.arrays.fusion import min_max
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.base import as_json, unique_documents
from precise_rag.index.candidates import limit_tokens
from precise_rag.index.databases.engine import Engine, FoundSentence, Pool, StoredDocument, View
from precise_rag.index.databases.location import load_engine
from precise_rag.index.databases.sentences import digest, query_terms, stored
from precise_rag.index.hybrid import HybridSettings, adaptive_weight
from precise_rag.index.matching import warn_of_unknown_field
from precise_rag.index.neighbours import rows_around
from precise_rag.index.queries import check_search, query_direction
from precise_rag.index.sentence_base import Returns, check_returns
from precise_rag.index.storage.files import check_metadata
from precise_rag.index.storage.trust import without_models
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables
from precise_rag.types import Candidate, Document, FloatArray, ScoreScale, Stretch

_BATCH = 256
"""Documents that are read, encoded and written together."""
_SAMPLE = 1_000
"""Rows whose scores stand for those of all, to see whether the best one stands out."""
_EXACT_UP_TO = 5_000
"""Up to this many rows the sample is read for each search; above, again when the number has changed."""
_DRIFT = 0.05
_SEARCH_SETTINGS = frozenset({"dense_weight", "adaptive", "pool", "returns", "filter_statistics"})


class DatabaseIndex(Portable):
    """Sentences scored as in HybridIndex, in rows of a database.

    Any number of processes may read and change the collection at once. A document is found with all of its
    sentences or not at all, and a crash leaves the old state of each document or the new one. Nothing has
    to be saved.

    engine: the database, see `Engine`; or a location, see `load_engine`.
    encoder: the encoder that the collection was made with, or is to be made with.
    settings: fields of `HybridSettings`, for a collection that does not exist yet; of an existing one, those
        that only a search reads may differ. `precision` "float32" or "float16" (the default here).
    Raises IndexFormatError if the collection was made with another encoder or other settings.

    `Candidate.scores` has "dense" and "words", the scores that were fused. Differs from HybridIndex: see
    docs/decisions/0028-rows-in-a-database.md.
    """

    kind = "database"
    score_scale: ClassVar[ScoreScale] = "rank"

    def __init__(self, engine: Engine | str | Path, encoder: Encoder, **settings: Any) -> None:
        self.engine: Engine = load_engine(engine) if isinstance(engine, str | Path) else engine
        if encoder is None:
            raise InputError("DatabaseIndex needs an encoder; pass encoder=load_encoder()")
        self.encoder = encoder
        made = self.engine.settings()
        self._exists = made is not None
        if made is not None:
            settings = _merged(self.engine.location, made, encoder, settings)
        try:
            self.settings = HybridSettings(**{"precision": "float16", **settings})
        except TypeError as error:
            raise InputError(f"DatabaseIndex: {error}") from error
        if self.settings.precision == "int8" or self.settings.backend != "numpy":
            raise InputError(
                "precision must be 'float32' or 'float16', and backend 'numpy', in a DatabaseIndex"
            )
        self._samples: dict[Filter | None, tuple[int, FloatArray]] = {}

    @classmethod
    def build(
        cls,
        documents: Iterable[Document],
        encoder: Encoder,
        *,
        location: Engine | str | Path,
        show_progress: bool = False,
        **settings: Any,
    ) -> Self:
        """Open or make a collection and add documents; see the class and `add`."""
        index = cls(location, encoder, **settings)
        index.add(documents, show_progress=show_progress)
        return index

    def __len__(self) -> int:
        if not self._exists:
            return 0
        with self.engine.view() as view:
            return view.count()

    @property
    def document_ids(self) -> tuple[str, ...]:
        """Ids of all documents, including those without text, in no order."""
        return tuple(self.engine.digests()) if self._exists else ()

    @property
    def empty_document_ids(self) -> tuple[str, ...]:
        """Ids of the documents without text; searches cannot find them."""
        sizes = self.engine.sizes() if self._exists else {}
        return tuple(identifier for identifier, size in sizes.items() if size == 0)

    def add(
        self,
        documents: Iterable[Document],
        *,
        vectors: Mapping[str, FloatArray] | None = None,
        show_progress: bool = False,
    ) -> None:
        """Add documents, or replace those whose ids are in the collection.

        A document with the same text as before is not encoded again; only its metadata changes. Documents
        are read, encoded and written in batches, so they may come from a generator; if anything is raised,
        earlier batches stay.

        documents: the documents; their metadata must be JSON.
        vectors: by document id, (d,) vectors that stand for all sentences of a document, which is then not
            encoded: those of nodes that come with embeddings of the same model. Default: none.
        show_progress: show a progress bar.
        """
        remaining, seen = iter(documents), set[str]()
        while batch := unique_documents(islice(remaining, _BATCH)):
            for document in batch:
                if document.id in seen:
                    raise InputError(f"two documents have the id {document.id!r}; give each its own id")
                seen.add(document.id)
                _check_document(document)
            self._write(batch, vectors or {}, show_progress)

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents by id. Raises InputError, and changes nothing, if an id is unknown."""
        wanted = {ids} if isinstance(ids, str) else set(ids)
        if not wanted:
            return
        known = self.engine.digests(wanted) if self._exists else {}
        if unknown := sorted(wanted - known.keys()):
            raise InputError(f"no document {unknown[0]!r} in the index ({len(unknown)} unknown ids)")
        self.engine.delete(sorted(wanted))

    def optimize(self) -> None:
        """Build or update the database's indexes; after large changes, searches are faster for it."""
        if self._exists:
            self.engine.optimize()

    def close(self) -> None:
        """End the connections to the database; the next use opens them again."""
        self.engine.close()

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        filter: Filter | Mapping[str, Any] | None = None,
        vector: FloatArray | None = None,
        returns: Returns | None = None,
        max_tokens: int | None = None,
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first.

        query: the query as text.
        top_k: maximum number of candidates; at least 1.
        filter: what the documents of all candidates must meet, see `as_filter`; default: nothing.
        vector: (d,) the query's vector; default: `query` is encoded.
        returns: "sentence", "passage" or "mixed", see `Returns`; default: the setting.
        max_tokens: limit on the tokens of all candidates; one that does not fit is skipped.
        Raises EmptyIndexError if the collection holds no text.
        """
        check_search(query, top_k)
        returns = check_returns(returns or self.settings.returns)
        wanted = None if filter is None else as_filter(filter)
        if vector is None and self._exists:
            vector = self.encoder.encode_queries([query])[0]
        if not self._exists and not self._appeared():
            raise EmptyIndexError("the index holds no documents and no text; add documents first")
        direction = query_direction(vector, self.encoder.dimension)
        with self.engine.view() as view:
            if not view.count():
                raise EmptyIndexError("the index holds no text; add documents first")
            pool = self._pool(view, query, direction, max(top_k, self.settings.pool), wanted)
            if not len(pool.keys):
                self._warn(view, wanted)
                return []
            fused = self._fused(view, direction, pool, wanted)
            chosen = _chosen(fused, pool, returns, top_k)
            found = view.read([pool.keys[i] for i in chosen])
            n_wide = {"sentence": 0, "mixed": 1, "passage": len(chosen)}[returns]
            ranges = [(sentence.doc_id, *sentence.passage) for sentence in found[:n_wide]]
            wide = [_joined(rows) for rows in view.between(ranges, "start")] if ranges else []
        candidates = [
            self._candidate(sentence, float(fused[i]), {"dense": pool.dense[i], "words": pool.words[i]})
            for i, sentence in zip(chosen, [*wide, *found[n_wide:]], strict=True)
        ]
        return candidates if max_tokens is None else limit_tokens(candidates, max_tokens)

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the stretches of `sentences` with up to `reach` sentences before and after each.

        Each sentence is in one stretch; stretches of one document have a sentence between them. A candidate
        that is not a sentence of the index is in none. Nothing is encoded.
        """
        if not sentences or not self._exists:
            return []
        spans = {(c.doc_id, c.start, c.end) for c in sentences}
        with self.engine.view() as view:
            starts = [(doc_id, start, start + 1) for doc_id, start, _ in sorted(spans)]
            found = [row for rows in view.between(starts, "start") for row in rows]
            places: dict[str, list[int]] = {}
            for row in found:
                if (row.doc_id, row.start, row.end) in spans:
                    places.setdefault(row.doc_id, []).append(row.place)
            ranges = [
                (doc_id, first, end)
                for doc_id, of_document in places.items()
                for first, end in rows_around(of_document, max(of_document) + reach + 1, reach)
            ]
            stretches = view.between(ranges, "place") if ranges else []
        return [self._stretch(rows) for rows in stretches if rows]

    def _stretch(self, rows: Sequence[FoundSentence]) -> Stretch:
        text = "".join(row.text for row in rows)[: rows[-1].end - rows[0].start]
        return Stretch(text, tuple(self._candidate(row, 0.0, {}) for row in rows))

    def save(self, path: str | Path) -> None:
        """Do nothing: the rows are in the database. Raises InputError if `path` is another place."""
        if str(path) != self.engine.location:
            raise InputError(
                f"the index is in {self.engine.location}; build another one there with location={path!r}"
            )

    @classmethod
    def load(cls, path: str | Path, encoder: Encoder, **settings: Any) -> Self:
        """Open the collection at a location. Raises IndexFormatError if the location holds none."""
        index = cls(path, encoder, **settings)
        if not index._exists:
            raise IndexFormatError(f"{index.engine.location} holds no index; build one there")
        return index

    def _appeared(self) -> bool:
        """Whether the collection exists by now: another process may have made it."""
        self._exists = self._exists or self.engine.settings() is not None
        return self._exists

    def _write(
        self, batch: Sequence[Document], vectors: Mapping[str, FloatArray], show_progress: bool
    ) -> None:
        if not self._exists:
            names = [field.name for field in fields(HybridSettings)]
            values = {name: as_json(getattr(self.settings, name)) for name in names}
            source = getattr(self.encoder, "source", None) or self.encoder.name
            about = {"encoder": {"name": self.encoder.name, "source": source}, "settings": values}
            self.engine.create(about, self.encoder.dimension)
            self._exists = True
        known = self.engine.digests([document.id for document in batch])
        texts = {document.id: digest(document.text) for document in batch}
        new = [document for document in batch if known.get(document.id) != texts[document.id]]
        same = [document for document in batch if known.get(document.id) == texts[document.id]]
        if same:
            self.engine.describe({document.id: document.metadata for document in same})
        if new:
            self.engine.write(list(self._stored(new, vectors, show_progress)))

    def _stored(
        self, documents: Sequence[Document], vectors: Mapping[str, FloatArray], show_progress: bool
    ) -> Iterable[StoredDocument]:
        given = [d for d in documents if d.text.strip() and d.id in vectors]
        unread = [d for d in documents if d.text.strip() and d.id not in vectors]
        ready = build_tables(given, self.encoder, vectors=False)
        tables = build_tables(unread, self.encoder, show_progress=show_progress)
        for document in documents:
            if not document.text.strip():
                yield StoredDocument(document.id, digest(document.text), document.metadata, ())
            elif document.id in vectors:
                table = next(ready)
                row = query_direction(vectors[document.id], self.encoder.dimension)
                table = replace(table, vectors=np.tile(row, (len(table), 1)))
                yield stored(document, table, self.settings)
            else:
                yield stored(document, next(tables), self.settings)

    def _pool(self, view: View, query: str, direction: FloatArray, size: int, wanted: Filter | None) -> Pool:
        terms = query_terms(query, self.settings.stop_words)
        counted = wanted if self.settings.filter_statistics == "matching" else None
        frequencies, n_rows = view.frequencies(terms, counted)
        frequencies = np.minimum(frequencies, n_rows)
        idf = np.log1p((n_rows - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)
        return view.pool(direction, terms, idf, size, wanted)

    def _fused(self, view: View, direction: FloatArray, pool: Pool, wanted: Filter | None) -> FloatArray:
        """(n,) score of each row of the pool."""
        weight = self.settings.dense_weight
        if self.settings.adaptive:
            usual = self._sample(view, wanted) @ direction
            weight *= adaptive_weight(usual, float(pool.dense.max()))
        fused: FloatArray = weight * min_max(pool.dense) + (1 - weight) * min_max(pool.words)
        return fused

    def _sample(self, view: View, wanted: Filter | None) -> FloatArray:
        count = view.count()
        at, sample = self._samples.get(wanted, (0, None))
        if sample is None or count <= _EXACT_UP_TO or not math.isclose(count, at, rel_tol=_DRIFT):
            sample = view.sample(_SAMPLE, wanted)
            if len(self._samples) > _BATCH:
                self._samples.clear()
            self._samples[wanted] = count, sample
        return sample

    def _candidate(self, sentence: FoundSentence, score: float, scores: Mapping[str, Any]) -> Candidate:
        return Candidate(
            doc_id=sentence.doc_id,
            start=sentence.start,
            end=sentence.end,
            text=sentence.text[: sentence.end - sentence.start],
            score=score,
            score_scale=self.score_scale,
            n_tokens=sentence.n_tokens,
            passage=sentence.passage,
            scores={name: float(value) for name, value in scores.items()},
            metadata=sentence.metadata,
        )

    def _warn(self, view: View, wanted: Filter | None) -> None:
        for condition in wanted.conditions() if wanted is not None else ():
            known = (
                condition.operator == "$exists" or condition.field == "$id" or view.has_field(condition.field)
            )
            if not known:
                warn_of_unknown_field(condition.field)


def _merged(
    location: str, made: Mapping[str, Any], encoder: Encoder, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of an existing collection, with those given for searches."""
    if made["encoder"]["name"] != encoder.name:
        name = made["encoder"]["name"]
        raise IndexFormatError(
            f"{location} was built with encoder {name!r} but {encoder.name!r} was given; "
            f"open it with load_encoder({name!r}), or build another collection"
        )
    saved = made["settings"]
    changed = {name for name, value in given.items() if saved.get(name) != as_json(value)}
    if fixed := sorted(changed - _SEARCH_SETTINGS):
        raise InputError(
            f"{fixed[0]} cannot change in the collection {location} (settings that can: "
            f"{', '.join(sorted(_SEARCH_SETTINGS))}); build another collection"
        )
    known = {field.name for field in fields(HybridSettings)}
    if unknown := sorted(saved.keys() - known):
        raise IndexFormatError(f"{location} has the setting {unknown[0]!r}, which this version does not know")
    return {**without_models(saved), **given}


def _check_document(document: Document) -> None:
    """Raise InputError unless a database can hold a document."""
    try:
        check_metadata(dict(document.metadata))
        json.dumps(dict(document.metadata), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"document {document.id!r}: metadata cannot be saved as JSON: {error}") from error
    try:
        document.id.encode()
        document.text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"document {document.id!r}: no database holds half a character: {error}") from error


def _chosen(fused: FloatArray, pool: Pool, returns: Returns, top_k: int) -> list[int]:
    """Places in the pool of the sentences to return, best first; see `Returns`."""
    order: list[int] = top_rows(fused, len(fused)).tolist()
    if returns == "sentence":
        return order[:top_k]
    passage = [(pool.doc_ids[i], int(pool.passages[i])) for i in order]
    if returns == "mixed":
        best = passage[0]
        rest = [i for i, its in zip(order[1:], passage[1:], strict=True) if its != best]
        return [order[0], *rest][:top_k]
    first = dict(zip(reversed(passage), reversed(order), strict=True))
    return [i for i, its in zip(order, passage, strict=True) if first[its] == i][:top_k]


def _joined(rows: Sequence[FoundSentence]) -> FoundSentence:
    """The rows of a passage as one."""
    n_tokens = sum(row.n_tokens for row in rows)
    return rows[0]._replace(end=rows[-1].end, n_tokens=n_tokens, text="".join(row.text for row in rows))
