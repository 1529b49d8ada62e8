"""What each pipeline sends for each question, computed once and kept in a file.

A context does not depend on who reads it, so that readers and models are measured over the same contexts, and
a run that was stopped goes on where it was.
"""

import hashlib
import json
import pickle
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.adoption.app import RememberingReranker
from benchmarks.questions import unseen
from precise_rag import PreciseRAG
from precise_rag.context import context_passages
from precise_rag.documents import read_json_lines
from precise_rag.evaluation import Dataset, load_development_set
from precise_rag.evaluation.datasets import Question
from precise_rag.evaluation.measures.statistics import bootstrap_interval
from precise_rag.index import DenseIndex
from precise_rag.protocols import Encoder
from precise_rag.types import Document, Excerpt, FloatArray

Value = TypeVar("Value")

NAIVE = "naive: 200 tokens, 15 best"
SEARCH = "precise: search alone, 10 best"
PARTS = ("redundancy", "evidence", "selector")
"""Parts of the default pipeline that are left out one by one; without the reranker no other can follow."""
PAPERS = ("sage", "recursive", "chunkrag", "paretorag")
WITHOUT_MODEL: Mapping[str, Mapping[str, Any]] = {"chunkrag": {"rewriter": None, "relevance": None}}
"""Stages that ask a model, by preset."""
UNANSWERABLE = "squad2_unanswerable"


class Collection(NamedTuple):
    """Documents, questions about them, and questions that they do not answer."""

    name: str
    documents: list[Document]
    questions: list[Question]
    unanswerable: list[Question]


def collection(name: str, args: Namespace) -> Collection:
    """Some of a set's documents, and at most --sample questions of either kind.

    Documents are added in seeded order, those with questions first, until they have --characters and can
    answer --sample questions. No question is about a document that a packaged model was trained on. Only
    of SQuAD there are questions without an answer.
    """
    dataset = unseen(load_development_set(name, args.data))
    rng = np.random.default_rng(args.seed)
    asked = [question for question in dataset.questions if question.answers]
    about = {doc_id for question in asked for doc_id in asked_about(question)}
    order = rng.permutation(len(dataset.documents)).tolist()
    order.sort(key=lambda place: dataset.documents[place].id not in about)
    documents: list[Document] = []
    known: set[str] = set()
    answerable: list[Question] = []
    size = 0
    for place in order:
        if size >= args.characters and len(answerable) >= args.sample:
            break
        documents.append(document := dataset.documents[place])
        known.add(document.id)
        size += len(document.text)
        if document.id in about:
            answerable = [question for question in asked if asked_about(question) <= known]
    unanswerable = unanswerable_about(dataset, known, args) if name == "squad" else []
    chosen = (
        [questions[place] for place in rng.permutation(len(questions))[: args.sample].tolist()]
        for questions in (answerable, unanswerable)
    )
    return Collection(name, documents, *chosen)


def asked_about(question: Question) -> set[str]:
    """The documents that a question needs."""
    return {e.doc_id for e in question.evidence} or {question.doc_id or ""}


def unanswerable_about(dataset: Dataset, known: set[str], args: Namespace) -> list[Question]:
    """The questions of SQuAD 2.0 about these documents that they do not answer."""
    path = Path(args.data) / f"dev_qa_questions_{UNANSWERABLE}.jsonl.gz"
    return [
        Question(str(row["id"]), row["question"], doc_id=row["doc_id"])
        for _, _, row in read_json_lines(path)
        if row["doc_id"] in known
    ]


def pipelines(
    documents: Sequence[Document], encoder: Encoder, llm: Any = None
) -> dict[str, Callable[[], PreciseRAG]]:
    """What makes each pipeline, by name: naive, the default one, it without each part, and the presets.

    None has a reader: what is sent does not depend on it.
    """
    plain: dict[str, Any] = dict.fromkeys(("reranker", "redundancy", "evidence", "selector", "reader"))
    reranker = RememberingReranker()

    @cache
    def index() -> Any:
        return PreciseRAG.from_documents(documents, encoder=encoder).index

    def naive() -> PreciseRAG:
        chunks = DenseIndex.build(documents, encoder, chunks="200 tokens")
        return PreciseRAG(chunks, llm, n_candidates=15, feedback=None, style="short", **plain)

    def search() -> PreciseRAG:
        return PreciseRAG(index(), llm, style="short", **plain).with_k(10)

    def without(*parts: str) -> PreciseRAG:
        left_out: dict[str, Any] = dict.fromkeys((*parts, "reader"))
        return PreciseRAG(index(), llm, reranker=reranker, style="short", **left_out)

    def preset(name: Any) -> PreciseRAG:
        left_out = WITHOUT_MODEL.get(name, {}) if llm is None else {}
        return PreciseRAG.from_documents(
            documents, llm, preset=name, encoder=encoder, style="short", **left_out
        )

    return {
        NAIVE: naive,
        "precise": without,
        SEARCH: search,
        **{f"precise without {part}": lambda part=part: without(part) for part in PARTS},  # type: ignore[misc]
        **{name: lambda name=name: preset(name) for name in PAPERS},  # type: ignore[misc]
    }


def sent(rag: PreciseRAG, query: str) -> tuple[Excerpt, ...]:
    """The excerpts that a model would read, in its order."""
    return tuple(passage.excerpt for passage in context_passages(rag.retrieve(query), rag.order))


def contexts(
    title: str, make: Callable[[], PreciseRAG], questions: Sequence[Question], file: Path
) -> list[tuple[Excerpt, ...]]:
    """What a pipeline sends for each question; it is made only if the file lacks one."""
    rag = cache(make)
    return remembered(file, questions, lambda question: sent(rag(), question.text), title)


def remembered(
    file: Path, questions: Sequence[Question], compute: Callable[[Question], Value], title: str = ""
) -> list[Value]:
    """The value of each question, from the file as far as it has them; others are computed and appended."""
    file.parent.mkdir(parents=True, exist_ok=True)
    known, whole = _records(file) if file.exists() else ({}, 0)
    missing = [question for question in questions if question.id not in known]
    if missing:
        print(f"{title}: {len(missing)} of {len(questions)} questions to do", flush=True)
    with file.open("r+b" if file.exists() else "wb") as more:
        more.seek(whole)
        more.truncate()  # what a process that was ended has not finished
        for question in missing:
            known[question.id] = compute(question)
            pickle.dump((question.id, known[question.id]), more)
            more.flush()
    return [known[question.id] for question in questions]


def _records(file: Path) -> tuple[dict[str, Any], int]:
    """The values of a file by question, and the bytes that are whole records."""
    known, whole = {}, 0
    with file.open("rb") as written:
        while True:
            try:
                key, value = pickle.load(written)
            except (EOFError, pickle.UnpicklingError):
                return known, whole
            known[key], whole = value, written.tell()


def file_of(args: Namespace, *names: str) -> Path:
    """The file in the work folder for what is named, with these options of the command."""
    options = {name: getattr(args, name, None) for name in ("characters", "sample", "seed", "encoder")}
    key = hashlib.sha256(json.dumps([names, options]).encode()).hexdigest()[:16]
    return Path(args.work) / "contexts" / f"{key}.pickle"


def with_interval(values: FloatArray) -> list[float]:
    """The mean of values, one for each question, with the bounds of its 95 % interval."""
    return [float(one) for one in bootstrap_interval(values)]
