"""The questions that may be trained on, and lists of candidates for them from the library's own indexes.

There are four kinds of lists, so that a reranker meets what users have: sentences and passages with all
scores, chunks with a dense score alone, and chunks with a BM25 score alone. Training and benchmarks share
them, and the rule that says which documents may be trained on.
"""

import hashlib
import os
import pickle
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import bm25s
import numpy as np

from benchmarks.harness.datasets import (
    HALVED,
    Dataset,
    Evidence,
    Question,
    load_dataset,
    load_development_set,
    may_train_on,
)
from precise_rag.checkpoints import packaged_model
from precise_rag.index import DenseIndex, HybridIndex
from precise_rag.index.groups import Groups, Passages, passage_ids
from precise_rag.index.words import load_stop_words, split_words
from precise_rag.protocols import Encoder
from precise_rag.rerank.candidate_texts import text_around
from precise_rag.sentences.sentence_tables import tables_of
from precise_rag.sentences.trimming import trim_spans
from precise_rag.types import Candidate, Document

T = TypeVar("T")
_STOP_WORDS = load_stop_words("english")
N_CANDIDATES = 50
KINDS = ("sentences", "passages", "dense", "bm25")
N_DOCUMENTS = {"fairytaleqa": 90, "qmsum": 24}
"""Documents drawn from the training splits."""
_ENGLISH = (
    "afriqa cuad fairytaleqa faq friendsqa headings medquad multihop nq pira pubmedqa qmsum selqa "
    "squad-sentences squad2-part squadshifts tatqa"
)
SETS = (
    *(f"train/{name}" for name in _ENGLISH.split()),
    *(f"dev/{name}" for name in HALVED),
)
"""Question sets; of those that begin with "dev" half of the documents."""
UNANSWERABLE = ("multilingual", "nq", "squad2-part", "squad2")
"""Sets with a file of questions that their documents do not answer; squad2 is that of "dev/squad"."""
JOINED = ("afriqa", "nq", "pira", "pubmedqa", "squad-sentences", "tatqa")
"""Sets whose documents were put together from several texts: their titles say nothing."""


def holds_evidence(one: Candidate, evidence: Iterable[Evidence]) -> bool:
    """Whether a candidate and a piece of evidence share half of the shorter of the two."""
    for doc_id, start, end in evidence:
        both = min(one.end, end) - max(one.start, start)
        if one.doc_id == doc_id and 0 < min(one.end - one.start, end - start) <= 2 * both:
            return True
    return False


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


def is_kept(doc_id: str, one_in: int = 8) -> bool:
    """Check whether the questions about a document are kept out of training, by its id."""
    return hashlib.sha256(doc_id.encode()).digest()[1] % one_in == 0


def read_set(name: str, folder: str | None) -> Dataset:
    """Read the questions with evidence of "dev/NAME" or "train/NAME". folder: default: PRECISE_DATA."""
    split, _, stem = name.partition("/")
    return load_development_set(stem, folder, split).with_evidence()


def with_documents(dataset: Dataset, n_documents: int | None) -> Dataset:
    """Draw so many documents of a set, with the questions about them; None: all."""
    order = np.random.default_rng(0).permutation(len(dataset.documents))[:n_documents]
    return dataset.restrict([dataset.documents[row].id for row in order])


def load_trainable(name: str, folder: str) -> Dataset:
    """Load what may be trained on of a set such as "train/nq", with questions that have no answer there.

    The metadata of a document are its title, empty where it says nothing.
    """
    split, _, stem = name.partition("/")
    dataset = read_set(name, folder)
    if split == "dev":
        dataset = dataset.restrict([d.id for d in dataset.documents if may_train_on(d.id)])
    titles = ("" if stem in JOINED else d.metadata.get("title") or "" for d in dataset.documents)
    titled = (replace(d, metadata={"title": one}) for d, one in zip(dataset.documents, titles, strict=True))
    dataset = replace(dataset, name=name, documents=tuple(titled))
    if (asking := "squad2" if name == "dev/squad" else stem) in UNANSWERABLE:
        data = Path(folder)
        asked = data / f"{split}_qa_questions_{asking}_unanswerable.jsonl.gz"
        unanswered = load_dataset(data / f"{split}_qa_docs_{stem}.jsonl.gz", asked, stem)
        known = {d.id for d in dataset.documents}
        asked_here = (q for q in unanswered.questions if q.doc_id in known)
        dataset = replace(dataset, questions=(*dataset.questions, *asked_here))
    return dataset


def collections_of(dataset: Dataset, characters: int) -> Iterator[Dataset]:
    """Split a set into collections of documents that questions need together, in random order.

    characters: of a collection, at least; the last one may have fewer. Documents that no question is about,
    and questions that need documents of several collections, are left out.
    """
    texts = {document.id: document.text for document in dataset.documents}
    taken: set[str] = set()
    collections: list[set[str]] = [set()]
    for row in np.random.default_rng(0).permutation(len(dataset.questions)):
        new = texts.keys() & documents_of(dataset.questions[row]) - taken
        taken |= new
        collections[-1] |= new
        if sum(len(texts[key]) for key in collections[-1]) > characters:
            collections.append(set())
    for inside in filter(None, collections):
        documents = tuple(d for d in dataset.documents if d.id in inside)
        questions = tuple(q for q in dataset.questions if inside >= documents_of(q))
        yield replace(dataset, documents=documents, questions=questions)


def documents_of(question: Question) -> set[str]:
    """Return the ids of the documents that belong to a question: with its evidence, or offered with it."""
    own = {question.doc_id} if question.doc_id else set()
    return own.union((one.doc_id for one in question.evidence), question.metadata.get("candidates", ()))


def candidate_lists(
    dataset: Dataset, kind: str, encoder: Encoder, cache: Path | None = None
) -> list[CandidateList]:
    """Retrieve one list for each question of the dataset. cache: folder that keeps the lists."""

    def make() -> list[CandidateList]:
        index, settings = index_of(dataset.documents, kind, encoder)
        texts = {document.id: document.text for document in dataset.documents}
        lists = []
        for question in dataset.questions:
            found = index.search(question.text, N_CANDIDATES, **settings)
            found = [one for one in found if not asks_itself(one, question)]
            found = in_their_texts(found, texts) if kind == "sentences" else found
            lists.append(as_candidate_list(question, found))
        return lists

    name = f"{dataset.name.replace('/', '_')}-{len(dataset.questions)}-{kind}"
    return made_once(cache, name, make)


def made_once(cache: Path | None, name: str, make: Callable[[], T]) -> T:
    """Return what `make` makes; a folder `cache` keeps it, and a later call reads it there."""
    path = cache and cache / f"{name}.pickle"
    if path is None:
        return make()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(pickle.dumps(make()))
        os.replace(part, path)
    kept: T = pickle.loads(path.read_bytes())
    return kept


def in_their_texts(found: Iterable[Candidate], texts: Mapping[str, str]) -> list[Candidate]:
    """Give candidates the text around them, as a pipeline does. texts: of the documents, by their ids."""
    around = ((one, *text_around(texts[one.doc_id], one.start, one.end)) for one in found)
    return [replace(one, before=before, after=after) for one, before, after in around]


def asks_itself(candidate: Candidate, question: Question) -> bool:
    """Check whether a candidate holds the question where its document asks it."""
    span = question.metadata.get("asked")
    is_there = span is not None and candidate.doc_id == question.group
    return is_there and candidate.start < span.end and span.start < candidate.end


def as_candidate_list(question: Question, found: Iterable[Candidate]) -> CandidateList:
    """Label what was found for a question; of the metadata, the titles are kept."""
    kept = [replace(c, metadata={"title": c.metadata.get("title") or ""}) for c in found]
    relevant = np.array([holds_evidence(c, question.evidence) for c in kept], dtype=bool)
    return CandidateList(question.text, question.group, kept, relevant, question.evidence)


def index_of(documents: Sequence[Document], kind: str, encoder: Encoder) -> tuple[Any, dict[str, Any]]:
    """Build the index of a kind; returns it with the options of its searches."""
    if kind in ("sentences", "passages"):
        return HybridIndex.build(documents, encoder), {"returns": kind.removesuffix("s")}
    if kind == "dense":
        return DenseIndex.build(documents, encoder, chunks="200 tokens", chunk_vectors="mean"), {}
    return WordChunks(documents, encoder, "100 tokens"), {}


class WordChunks:
    """Searches chunks by Okapi BM25; chunks without a word of the query are not found.

    encoder: counts tokens. chunks: how sentences are grouped; then, all of them.
    """

    def __init__(self, documents: Sequence[Document], encoder: Encoder, chunks: Passages) -> None:
        with_text = [document for document in documents if document.text.strip()]
        self.chunks: list[Candidate] = []
        for document, table in tables_of(with_text, encoder, vectors=False):
            groups = Groups.by_change(passage_ids(document, table, chunks))
            for start, end in groups.spans(trim_spans(document.text, table.spans)).tolist():
                text, metadata = document.text[start:end], document.metadata
                self.chunks.append(Candidate(document.id, start, end, text, 0.0, "bm25", metadata=metadata))
        self._bm25 = bm25s.BM25()
        self._bm25.index([_words(chunk.text) for chunk in self.chunks], show_progress=False)

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        """Return at most `top_k` candidates, best first."""
        scores = self.scores(query)
        best = [row for row in np.argsort(-scores, kind="stable")[:top_k] if scores[row] > 0]
        found = ((self.chunks[row], float(scores[row])) for row in best)
        return [replace(chunk, score=score, scores={"bm25": score}) for chunk, score in found]

    def scores(self, query: str) -> np.ndarray:
        """Return the (n,) scores of all chunks; 0 without a word of the query."""
        words = _words(query)
        return self._bm25.get_scores(words) if words else np.zeros(len(self.chunks))


def _words(text: str) -> list[str]:
    return [word for word in split_words(text) if word not in _STOP_WORDS]


def new_parser(module: str, doc: str, *, has_cache: bool = False, network: str = "") -> ArgumentParser:
    """Make a parser with the folders of a training command; `doc` begins with its description.

    network: the name of the packaged model whose network is taken, unless another is given.
    """
    parser = ArgumentParser(prog=f"python -m {module}", description=doc.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for what is made")
    data = os.environ.get("PRECISE_DATA")
    help = "folder of the training files and sets (default: PRECISE_DATA)"
    parser.add_argument("--data", metavar="DIR", default=data, required=not data, help=help)
    if has_cache:
        parser.add_argument("--cache", type=Path, help="folder that keeps candidate lists")
    if network:
        parser.add_argument("--network", type=Path, default=packaged_model(network), metavar="FOLDER")
    return parser
