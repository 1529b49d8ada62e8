"""Questions with their reranked sentences and the sentences around them, from the library's own search."""

import pickle
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness.datasets import HALVED, UNSEEN, Dataset, Evidence, may_train_on
from precise_rag.evidence.model import REACH
from precise_rag.evidence.stretches import by_section
from precise_rag.index import HybridIndex
from precise_rag.index.arrays.heading_columns import headings_above
from precise_rag.index.rows.neighbours import rows_around
from precise_rag.rerank import CascadeReranker, rerank
from precise_rag.segmentation import Segmenter
from precise_rag.segmentation.segmenter import gap_gains, same_scores
from precise_rag.sentences import paragraph_ids
from precise_rag.sentences.tables import build_tables
from precise_rag.sentences.words import trim_spans
from precise_rag.types import Candidate, FloatArray, IntArray, Stretch
from training.candidate_lists import N_CANDIDATES, cached_encoder, calibrates, read_set

N_TRAINING = {"squad": 60, "covidqa": 60, "fairytaleqa": 60, "qmsum": 60}
"""Questions of the halves of the development sets that may be trained on, at most."""

N_SPLIT = {"fairytaleqa": (12, 100), "qmsum": (5, 40)}
"""Documents and questions of the training splits, at most; of documents that no reranker was trained on."""

N_DRAWN = {"fairytaleqa": 90, "qmsum": 24}
"""Documents of the training splits that the rerankers draw first."""

N_HELD_OUT = 200
"""Questions of a set that are measured on, at most."""


class Sentences(NamedTuple):
    """The n sentences of one document.

    spans: (n, 2) without white space at the ends. n_tokens: (n,). paragraphs: (n,). vectors: (n, d)
    float16. same: (n - 1,) probability that neighbours belong together, by `small`. above: (n,) what stands
    above each.
    """

    text: str
    spans: IntArray
    n_tokens: IntArray
    paragraphs: IntArray
    vectors: np.ndarray
    same: FloatArray
    above: list[str]


class Asked(NamedTuple):
    """A question. found: its candidates, best first, by the cascade. vector: of the question."""

    question: str
    group: str
    evidence: tuple[Evidence, ...]
    found: list[Candidate]
    vector: FloatArray


class QuestionSet(NamedTuple):
    """The questions of a set, and the sentences of its documents, by id."""

    name: str
    asked: list[Asked]
    documents: dict[str, Sentences]


def training_sets(options: Namespace) -> Iterator[QuestionSet]:
    """Yield the questions that may be trained on, by set."""
    for name in HALVED:
        dataset = read_set(f"dev/{name}", options.data)
        kept = tuple(q for q in dataset.questions if may_train_on(q.group))
        dataset = replace(dataset, questions=kept, name=f"train-half/{name}").sample(N_TRAINING[name])
        yield questions_of(dataset, options)
    for name, (n_documents, n_questions) in N_SPLIT.items():
        dataset = read_set(f"train/{name}", options.data)
        order = np.random.default_rng(0).permutation(len(dataset.documents))[N_DRAWN[name] :]
        drawn = [dataset.documents[i].id for i in order]
        unseen = [i for i in drawn if calibrates(i)][:n_documents]
        dataset = replace(dataset.restrict(unseen), name=f"train/{name}").sample(n_questions)
        yield questions_of(dataset, options)


def held_out_sets(
    options: Namespace, names: Sequence[str] = (*HALVED, *UNSEEN), *, within: bool = False
) -> Iterator[QuestionSet]:
    """Yield the questions that are measured on, by set: nothing is trained on their documents.

    within: whether each is asked of its own documents alone.
    """
    for name in names:
        dataset = read_set(f"dev/{name}", options.data)
        if name in HALVED:
            dataset = replace(
                dataset, questions=tuple(q for q in dataset.questions if not may_train_on(q.group))
            )
        sample = replace(dataset, name=f"held-out/{name}").sample(N_HELD_OUT, seed=1)
        yield questions_of(sample, options, within=within)


def questions_of(dataset: Dataset, options: Namespace, *, within: bool = False) -> QuestionSet:
    """Search and rerank for every question of a set; kept in the folder `options.cache`.

    within: whether each is asked of its own documents alone, by a filter.
    """
    name = f"{dataset.name}, own documents" if within else dataset.name
    reranker = CascadeReranker()
    key = (
        f"{name.replace('/', '-').replace(', ', '-')}-{len(dataset.questions)}-{reranker.weights_sha256[:8]}"
    )
    path: Path | None = options.cache and options.cache / f"{key}.pickle"
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    encoder = cached_encoder(options.vectors)
    index = HybridIndex.build(dataset.documents, encoder)
    asked = []
    for question in dataset.questions:
        vector = encoder.encode_queries([question.text])[0]
        own = {"$id": {"$in": sorted({e.doc_id for e in question.evidence})}} if within else None
        found = index.search(question.text, N_CANDIDATES, vector=vector, returns="sentence", filter=own)
        plain = [replace(c, metadata={}) for c in found]
        ranked = rerank(question.text, plain, reranker, index)
        asked.append(Asked(question.text, question.group, question.evidence, ranked, vector))
    made = QuestionSet(name, asked, sentences_of(dataset, encoder))
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(made))
    return made


def sentences_of(dataset: Dataset, encoder: object) -> dict[str, Sentences]:
    """Return the sentences of each document that has text."""
    documents = [d for d in dataset.documents if d.text.strip()]
    model = Segmenter.from_pretrained("small").model
    found = {}
    for document, table in zip(documents, build_tables(documents, encoder), strict=True):
        spans = trim_spans(document.text, table.spans)
        texts = [document.text[start:end] for start, end in table.spans]
        paragraphs = paragraph_ids(document.text, table.spans)
        gains = gap_gains(model.predict(texts).logits, np.diff(paragraphs) > 0, 0.5)
        found[document.id] = Sentences(
            document.text,
            spans,
            table.n_tokens,
            paragraphs,
            table.vectors.astype(np.float16),
            same_scores(gains, 0.5),
            headings_above(document, table.spans),
        )
    return found


def stretches_around(asked: Asked, documents: Mapping[str, Sentences]) -> list[Stretch]:
    """Return the sections around the sentences that were found, as an index and a grower do."""
    found: dict[str, set[int]] = {}
    for candidate in asked.found:
        row = np.searchsorted(documents[candidate.doc_id].spans[:, 0], candidate.start)
        found.setdefault(candidate.doc_id, set()).add(int(row))
    starts = {(candidate.doc_id, candidate.start) for candidate in asked.found}
    return [
        section
        for doc_id, rows in found.items()
        for first, end in rows_around(rows, len(documents[doc_id].spans), REACH)
        for _, section in by_section(_stretch(doc_id, documents[doc_id], first, end))
        if any((doc_id, sentence.start) in starts for sentence in section.sentences)
    ]


def _stretch(doc_id: str, document: Sentences, first: int, end: int) -> Stretch:
    rows = zip(
        document.spans[first:end].tolist(),
        document.n_tokens[first:end].tolist(),
        document.above[first:end],
        strict=True,
    )
    sentences = [
        Candidate(doc_id, start, stop, document.text[start:stop], 0.0, "rank", n_tokens, above=above)
        for (start, stop), n_tokens, above in rows
    ]
    return Stretch(document.text[sentences[0].start : sentences[-1].end], tuple(sentences))
