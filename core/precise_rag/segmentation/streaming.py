"""Segmentation of many documents, in order and with few in memory: with one encoder, or in processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Protocol

from precise_rag._pickling import check_picklable
from precise_rag._processes import importing_safely, of_one_process
from precise_rag._progress import progress_bar
from precise_rag.errors import InputError, WorkerError
from precise_rag.protocols import Encoder, SentenceSplitter
from precise_rag.sentences.tables import build_tables
from precise_rag.types import Chunk, Document, SentenceTable

_BATCH_CHARACTERS = 2**18
"""Characters of text in one batch for a worker process."""


class _Segmenter(Protocol):
    def segment(self, text: str | Document, table: SentenceTable | None = None) -> list[Chunk]: ...

    def segment_many(self, texts: Iterable[str | Document]) -> Iterator[list[Chunk]]: ...


_worker: _Segmenter | None = None


def segment_tables(
    segmenter: _Segmenter, texts: Iterable[str | Document], encoder: Encoder, splitter: SentenceSplitter
) -> Iterator[list[Chunk]]:
    """Yield the chunks of each text, in order; sentences of several texts are encoded together."""
    waiting: deque[Document] = deque()

    def remember() -> Iterator[Document]:
        for text in texts:
            waiting.append(text if isinstance(text, Document) else Document("text", text))
            yield waiting[-1]

    for table in build_tables(remember(), encoder, splitter):
        yield segmenter.segment(waiting.popleft(), table)


def segment_in_processes(
    segmenter: _Segmenter, texts: Iterable[str | Document], processes: int
) -> Iterator[list[Chunk]]:
    """Yield the chunks of each text, in order. The segmenter is sent to each process once.

    Raises WorkerError if a process dies, InputError if the segmenter cannot be pickled.
    """
    check_picklable(segmenter, vars(segmenter), "pass processes=1, or functions of a module")
    return of_one_process(_from_pool(segmenter, texts, processes))


def _from_pool(
    segmenter: _Segmenter, texts: Iterable[str | Document], processes: int
) -> Iterator[list[Chunk]]:
    try:
        with importing_safely():
            spawn = get_context("spawn")
            pool = ProcessPoolExecutor(processes, spawn, initializer=_start, initargs=(segmenter,))
        with pool:
            pending: deque[Future[list[list[Chunk]]]] = deque()
            for batch in _batches(texts):
                with importing_safely():
                    pending.append(pool.submit(_segment_batch, batch))
                if len(pending) > 2 * processes:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
    except BrokenProcessPool as error:
        raise WorkerError(
            "a worker process died; it may have run out of memory (pass fewer processes), or the script "
            "runs on import (put its code under: if __name__ == '__main__')"
        ) from error


def check_texts(texts: Iterable[str | Document]) -> None:
    """Raise InputError if `texts` is a single text or cannot be iterated over."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"texts must be a list of texts or Documents, got {type(texts).__name__}")


def with_progress(results: Iterator[list[Chunk]], texts: Iterable[str | Document]) -> Iterator[list[Chunk]]:
    """Yield the results with a progress bar; its length is known if `texts` is a sequence."""
    total = len(texts) if isinstance(texts, Sequence) else None
    yield from progress_bar(results, shown=True, desc="segmenting", unit=" documents", total=total)


def _batches(texts: Iterable[str | Document]) -> Iterator[list[str | Document]]:
    batch: list[str | Document] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text if isinstance(text, str) else text.text)
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _start(segmenter: _Segmenter) -> None:
    global _worker
    _worker = segmenter


def _segment_batch(batch: list[str | Document]) -> list[list[Chunk]]:
    assert _worker is not None
    return list(_worker.segment_many(batch))
