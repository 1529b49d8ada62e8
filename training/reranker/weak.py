"""Weak lists: candidates for questions made from training documents, of all kinds of lists."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from zlib import crc32

import numpy as np

from benchmarks.harness.datasets import Evidence, Question
from precise_rag.protocols import Encoder
from training.candidate_lists import (
    KINDS,
    N_CANDIDATES,
    CandidateList,
    as_candidate_list,
    cached_encoder,
    index_of,
    made_once,
)
from training.weak_questions import as_typed, asked_of, collections, documents_of

ROUNDS = 3
"""Collections of each source, times its share. The first of each source is left to benchmarks."""

QUESTIONS = 90
"""Questions of a collection."""


def weak_lists(options: Namespace) -> Iterator[tuple[str, list[CandidateList]]]:
    """Yield (source, lists) of each collection. options.cache: folder that keeps the lists."""
    encoder = cached_encoder(options.vectors)
    for source, number, records in collections(options.data, ROUNDS):
        if not number:
            continue
        name = f"weak-{source}-{number:03d}"
        random = np.random.default_rng(crc32(f"{name}.pickle".encode()))
        yield source, made_once(options.cache, name, partial(_lists, records, source, encoder, random))


def _lists(
    records: Sequence[dict], source: str, encoder: Encoder, random: np.random.Generator
) -> list[CandidateList]:
    asked = [(one, as_typed(one.question, random)) for one in asked_of(records, QUESTIONS, random)]
    documents, lists = documents_of(records), []
    for kind in KINDS:
        index, settings = index_of(documents, kind, encoder)
        for one, query in asked:
            found = one.without_itself(index.search(query, N_CANDIDATES, **settings))
            question = Question("", query, (Evidence(one.doc_id, one.start, one.end),))
            lists.append(as_candidate_list(question, found))
    return lists
