"""Candidate lists with relevance labels, as the library's own indexes give them.

Four kinds, so that a reranker meets what users have: sentences and passages with all scores, chunks
with a dense score alone, chunks with BM25 alone.
"""

import hashlib
import pickle
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precise_rag.encoders import DEFAULT_ENCODER, CachedEncoder, load_encoder
from precise_rag.evaluation import Dataset, Evidence, Question, load_development_set
from precise_rag.index import BM25Index, DenseIndex, HybridIndex
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate

N_CANDIDATES = 50
KINDS = ("sentences", "passages", "dense", "bm25")

HALVED = ("squad", "covidqa", "fairytaleqa", "qmsum")
"""Development sets of which half of the documents may be trained on; the other half is for measuring."""

TRAINING = ("fairytaleqa", "qmsum")
"""Sets with a training split."""


class CandidateList(NamedTuple):
    """The best candidates for a question, which of them hold (part of) its evidence, and that."""

    question: str
    group: str
    candidates: list[Candidate]
    relevant: np.ndarray
    evidence: tuple[Evidence, ...]


def may_train_on(doc_id: str) -> bool:
    """Whether a document of a halved development set is in the half for training; decided by its id."""
    return hashlib.sha256(doc_id.encode()).digest()[0] % 2 == 0


def calibrates(doc_id: str) -> bool:
    """Whether a training document is kept for calibration: one in four."""
    return hashlib.sha256(doc_id.encode()).digest()[1] % 4 == 0


def read_set(name: str, folder: str | None, n_documents: int | None = None) -> Dataset:
    """The questions with evidence of "dev/NAME" or "train/NAME", and all documents or the first few."""
    split, _, stem = name.partition("/")
    dataset = load_development_set(stem, folder, split).with_evidence()
    if n_documents is not None:
        order = np.random.default_rng(0).permutation(len(dataset.documents))[:n_documents]
        dataset = dataset.restrict([dataset.documents[i].id for i in order])
    return dataset


def encoder(cache: str | None) -> Encoder:
    """The default encoder, keeping its vectors in the file `cache` if there is one."""
    plain = load_encoder(DEFAULT_ENCODER)
    return CachedEncoder(plain, cache) if cache else plain


def candidate_lists(
    dataset: Dataset, kind: str, encoder: Encoder, cache: Path | None = None
) -> list[CandidateList]:
    """One list per question of the dataset; `cache`: a folder that keeps them."""
    path = cache and cache / f"{dataset.name.replace('/', '_')}-{len(dataset.questions)}-{kind}.pickle"
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    lists = list(_lists(dataset, kind, encoder))
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(lists))
    return lists


def _lists(dataset: Dataset, kind: str, encoder: Encoder) -> Iterator[CandidateList]:
    index, options = _index(dataset, kind, encoder)
    for question in dataset.questions:
        found = [replace(c, metadata={}) for c in index.search(question.text, N_CANDIDATES, **options)]
        relevant = np.array([is_relevant(c, question) for c in found], dtype=bool)
        yield CandidateList(question.text, question.group, found, relevant, question.evidence)


def _index(dataset: Dataset, kind: str, encoder: Encoder) -> tuple[Any, dict[str, Any]]:
    """The index of a kind and the options of its searches."""
    documents = dataset.documents
    if kind == "sentences":
        return HybridIndex.build(documents, encoder), {"returns": "sentence"}
    if kind == "passages":
        return HybridIndex.build(documents, encoder), {"returns": "passage"}
    if kind == "dense":
        return DenseIndex.build(documents, encoder, chunks="200 tokens", chunk_vectors="mean"), {}
    return BM25Index.build(documents, encoder, chunks="100 tokens"), {}


def folders(description: str) -> ArgumentParser:
    """A parser of where a script here reads and keeps things."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--data", help="folder of the sets; by default that in PRECISE_DATA")
    parser.add_argument("--vectors", help="file that keeps sentence vectors")
    parser.add_argument("--cache", type=Path, help="folder that keeps candidate lists and what they need")
    return parser


def is_relevant(candidate: Candidate, question: Question) -> bool:
    """Whether the candidate and a piece of evidence share half of the shorter of the two."""
    return any(_shared(candidate, evidence) >= 0.5 for evidence in question.evidence)


def _shared(candidate: Candidate, evidence: Evidence) -> float:
    if candidate.doc_id != evidence.doc_id:
        return 0.0
    both = min(candidate.end, evidence.end) - max(candidate.start, evidence.start)
    shorter = min(candidate.end - candidate.start, evidence.end - evidence.start)
    return both / shorter if both > 0 else 0.0
