"""Questions with their reranked sentences and the sentences around them, from the library's own search."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.harness.datasets import HALVED, Dataset, Evidence, may_train_on
from precise_rag.evidence.model import REACH
from precise_rag.evidence.stretches import by_section
from precise_rag.index import HybridIndex
from precise_rag.rerank import CascadeReranker, rerank
from precise_rag.types import Candidate, Stretch
from training.candidate_lists import (
    N_CANDIDATES,
    N_DOCUMENTS,
    cached_encoder,
    calibrates,
    made_once,
    read_set,
)

N_TRAINING = {"squad": 60, "covidqa": 60, "fairytaleqa": 60, "qmsum": 60}
"""Questions of the halves of the development sets that may be trained on, at most."""

N_SPLIT = {"fairytaleqa": (12, 100), "qmsum": (5, 40)}
"""Documents and questions of the training splits, at most. The rerankers draw the first N_DOCUMENTS."""


class Asked(NamedTuple):
    """A question. found: its candidates, best first, by the cascade. stretches: the sections around them."""

    question: str
    evidence: tuple[Evidence, ...]
    found: list[Candidate]
    stretches: list[Stretch]


def training_sets(options: Namespace) -> Iterator[tuple[str, list[Asked]]]:
    """Yield the name of each set, such as "train/qmsum", with the questions that may be trained on."""
    for name in HALVED:
        dataset = read_set(f"dev/{name}", options.data)
        kept = tuple(q for q in dataset.questions if may_train_on(q.group))
        dataset = replace(dataset, questions=kept, name=f"train-half/{name}").sample(N_TRAINING[name])
        yield dataset.name, asked_of(dataset, options)
    for name, (n_documents, n_questions) in N_SPLIT.items():
        dataset = read_set(f"train/{name}", options.data)
        order = np.random.default_rng(0).permutation(len(dataset.documents))[N_DOCUMENTS[name] :]
        drawn = [dataset.documents[i].id for i in order]
        unseen = [i for i in drawn if calibrates(i)][:n_documents]
        dataset = replace(dataset.restrict(unseen), name=f"train/{name}").sample(n_questions)
        yield dataset.name, asked_of(dataset, options)


def asked_of(dataset: Dataset, options: Namespace) -> list[Asked]:
    """Search and rerank for every question of a set; kept in the folder `options.cache`."""
    reranker = CascadeReranker()

    def make() -> list[Asked]:
        index = HybridIndex.build(dataset.documents, cached_encoder(options.vectors))
        asked = []
        for question in dataset.questions:
            found = index.search(question.text, N_CANDIDATES, returns="sentence")
            ranked = rerank(question.text, [replace(c, metadata={}) for c in found], reranker, index)
            around = sections_around(index, ranked)
            asked.append(Asked(question.text, question.evidence, ranked, around))
        return asked

    key = f"{dataset.name.replace('/', '-')}-{len(dataset.questions)}-{reranker.weights_sha256[:8]}"
    return made_once(options.cache, key, make)


def sections_around(index: HybridIndex, found: Sequence[Candidate]) -> list[Stretch]:
    """Return the sections around the sentences that were found, as a grower reads them."""
    ids = {candidate.id for candidate in found}
    return [
        section
        for stretch in index.neighbours(found, REACH)
        for _, section in by_section(stretch)
        if any(sentence.id in ids for sentence in section.sentences)
    ]
