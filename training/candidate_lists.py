"""Lists of candidates with relevance labels, from the library's own indexes.

There are four kinds, so that a reranker meets what users have: sentences and passages with all scores,
chunks with a dense score alone, and chunks with a BM25 score alone. Training and benchmarks share them,
and the rule that says which documents may be trained on.
"""

import hashlib
import pickle
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.datasets import (
    Dataset,
    Evidence,
    Question,
    holds_evidence,
    load_development_set,
    may_train_on,
)
from precise_rag.encoders import DEFAULT_ENCODER, CachedEncoder, load_encoder
from precise_rag.index import DenseIndex, HybridIndex
from precise_rag.protocols import Encoder
from precise_rag.rerank.candidate_texts import text_around
from precise_rag.types import Candidate, Document
from training.word_chunks import WordChunks

N_CANDIDATES = 50
KINDS = ("sentences", "passages", "dense", "bm25")

TRAINING = ("fairytaleqa", "qmsum")
"""Sets with a training split."""

N_DOCUMENTS = {"fairytaleqa": 90, "qmsum": 24}
"""Documents drawn from the training splits."""


class CandidateList(NamedTuple):
    """The best candidates for a question.

    group: id of the document, or group of documents, that the question is about. relevant: (n,) which
    candidates hold evidence. evidence: of the question.
    """

    question: str
    group: str
    candidates: list[Candidate]
    relevant: np.ndarray
    evidence: tuple[Evidence, ...]


def calibrates(doc_id: str) -> bool:
    """Check whether a training document is kept out to calibrate with: one in four, by its id."""
    return hashlib.sha256(doc_id.encode()).digest()[1] % 4 == 0


def read_set(name: str, folder: str | None, n_documents: int | None = None) -> Dataset:
    """Read the questions with evidence of "dev/NAME" or "train/NAME".

    folder: of the sets; default: PRECISE_DATA. n_documents: draw this many documents; default: all.
    """
    split, _, stem = name.partition("/")
    dataset = load_development_set(stem, folder, split).with_evidence()
    if n_documents is not None:
        order = np.random.default_rng(0).permutation(len(dataset.documents))[:n_documents]
        dataset = dataset.restrict([dataset.documents[i].id for i in order])
    return dataset


def cached_encoder(cache: str | None) -> Encoder:
    """Load the default encoder; it keeps its vectors in the file `cache`, if one is given."""
    plain = load_encoder(DEFAULT_ENCODER)
    return CachedEncoder(plain, cache) if cache else plain


def candidate_lists(
    dataset: Dataset, kind: str, encoder: Encoder, cache: Path | None = None
) -> list[CandidateList]:
    """Retrieve one list for each question of the dataset. cache: folder that keeps the lists."""
    path = cache and cache / f"{dataset.name.replace('/', '_')}-{len(dataset.questions)}-{kind}.pickle"
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    lists = list(_lists(dataset, kind, encoder))
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(lists))
    return lists


def trainable_lists(
    names: Iterable[str], n_questions: Mapping[str, int], options: Namespace, *, prefix: str = ""
) -> Iterator[tuple[str, str, list[CandidateList]]]:
    """Yield (name, kind, lists) of what may be trained on: whole training splits, half of a development set.

    names: such as "train/qmsum". n_questions: most questions of a set, by kind of list.
    prefix: of the names under which `options.cache` keeps the lists.
    """
    encoder = cached_encoder(options.vectors)
    for name in names:
        split, _, stem = name.partition("/")
        dataset = read_set(name, options.data, N_DOCUMENTS.get(stem) if split == "train" else None)
        if split == "dev":
            allowed = tuple(q for q in dataset.questions if may_train_on(q.group))
            dataset = replace(dataset, questions=allowed)
        for kind in KINDS:
            sample = replace(dataset.sample(n_questions[kind], seed=0), name=f"{prefix}{name}")
            yield name, kind, candidate_lists(sample, kind, encoder, options.cache)


def _lists(dataset: Dataset, kind: str, encoder: Encoder) -> Iterator[CandidateList]:
    index, settings = index_of(dataset.documents, kind, encoder)
    texts = {document.id: document.text for document in dataset.documents}
    for question in dataset.questions:
        found = index.search(question.text, N_CANDIDATES, **settings)
        yield as_candidate_list(question, in_their_texts(found, texts) if kind == "sentences" else found)


def in_their_texts(found: Iterable[Candidate], texts: Mapping[str, str]) -> list[Candidate]:
    """Give candidates the text around them, as a pipeline does. texts: of the documents, by their ids."""
    around = ((one, *text_around(texts[one.doc_id], one.start, one.end)) for one in found)
    return [replace(one, before=before, after=after) for one, before, after in around]


def as_candidate_list(question: Question, found: Iterable[Candidate]) -> CandidateList:
    """Label what was found for a question; of the metadata, the titles are kept."""
    kept = [replace(c, metadata={"title": c.metadata.get("title") or ""}) for c in found]
    relevant = np.array([holds_evidence(c, question.evidence) for c in kept], dtype=bool)
    return CandidateList(question.text, question.group, kept, relevant, question.evidence)


def index_of(documents: Sequence[Document], kind: str, encoder: Encoder) -> tuple[Any, dict[str, Any]]:
    """Build the index of a kind; returns it with the options of its searches."""
    if kind == "sentences":
        return HybridIndex.build(documents, encoder), {"returns": "sentence"}
    if kind == "passages":
        return HybridIndex.build(documents, encoder), {"returns": "passage"}
    if kind == "dense":
        return DenseIndex.build(documents, encoder, chunks="200 tokens", chunk_vectors="mean"), {}
    return WordChunks(documents, encoder, "100 tokens"), {}


def new_parser(module: str, doc: str) -> ArgumentParser:
    """Make a parser with the folders of a training command; `doc` begins with its description."""
    parser = ArgumentParser(prog=f"python -m {module}", description=doc.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    parser.add_argument("--data", metavar="DIR", help="folder of the sets (default: PRECISE_DATA)")
    parser.add_argument("--vectors", help="file that keeps sentence vectors")
    parser.add_argument("--cache", type=Path, help="folder that keeps candidate lists and networks")
    return parser
