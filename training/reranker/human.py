"""Lists of candidates for human questions: every English set, and other languages."""

import pickle
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from benchmarks.harness.datasets import Question
from precise_rag.index import HybridIndex
from precise_rag.protocols import Encoder
from training.candidate_lists import (
    KINDS,
    N_CANDIDATES,
    CandidateList,
    as_candidate_list,
    cached_encoder,
    calibrates,
    index_of,
)
from training.human_questions import SETS, Collection, collections_of, load_trainable
from training.question_rules import as_typed

LANGUAGES = ("ar", "fa", "fr", "he", "nb", "pt", "th", "tr", "zh", "zh-hant")
"""Languages of the set multilingual that are used. Japanese comes from jaquad."""

FOREIGN = (*(f"train/multilingual/{name}" for name in LANGUAGES), "train/jaquad")
"""Question sets in other languages than English."""

NAMELESS = ("train/cuad", "train/friendsqa", "train/qmsum", "dev/qmsum")
"""Sets whose questions do not say which document they are about: every second one is asked of it alone."""


class Size(NamedTuple):
    """What is drawn of a set.

    characters: of its collections. questions: of a collection, at most, to train on. kept: to measure with.
    """

    characters: tuple[int, ...]
    questions: int
    kept: int


ENGLISH_SIZE = Size((60_000,), 100, 50)
FOREIGN_SIZE = Size((30_000,), 80, 40)
LARGER = {
    "train/afriqa": Size((130_000, 40_000), 150, 60),
    "train/cuad": Size((350_000, 150_000), 150, 60),
    **dict.fromkeys(("train/fairytaleqa", "train/friendsqa"), Size((90_000, 30_000), 150, 60)),
    "train/faq": Size((130_000, 50_000), 150, 60),
    "train/headings": Size((200_000, 80_000), 150, 60),
    "train/medquad": Size((100_000,), 100, 50),
    **dict.fromkeys(("train/multihop", "train/qmsum", "dev/qmsum"), Size((150_000,), 100, 50)),
}
"""Sets with few questions to a page, or of a kind of which there is no other set."""


def human_lists(options: Namespace) -> Iterator[tuple[str, dict[str, list[CandidateList]]]]:
    """Yield (set, lists by kind) of each collection of documents. options.cache: folder that keeps them.

    They hold the documents that `calibrates` keeps out, and questions about them.
    """
    encoder = cache(lambda: cached_encoder(options.vectors))
    for names, size in ((SETS, ENGLISH_SIZE), (FOREIGN, FOREIGN_SIZE)):
        for name in names:
            yield from _of_set(name, LARGER.get(name, size), options, encoder)


def _of_set(
    name: str, size: Size, options: Namespace, encoder: Any
) -> Iterator[tuple[str, dict[str, list[CandidateList]]]]:
    stem = name.replace("/", "-")
    paths = [
        options.cache and options.cache / f"human-{stem}-{n}.pickle" for n in range(len(size.characters))
    ]
    if any(path is None or not path.exists() for path in paths):
        several = collections_of(load_trainable(name, options.data), size.characters)
        for path, collection in zip(paths, several, strict=False):
            if path is None or not path.exists():
                lists = _lists(collection, size, encoder())
                if path is None:
                    yield name, lists
                else:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(pickle.dumps(lists))
    for path in paths:
        if path and path.exists():
            yield name, pickle.loads(path.read_bytes())


def _lists(collection: Collection, size: Size, encoder: Encoder) -> dict[str, list[CandidateList]]:
    random = np.random.default_rng(crc32(f"{collection.name} {collection.number}".encode()))
    asked = list(_drawn(collection, size, random))
    hybrid: Any = HybridIndex.build(collection.documents, encoder)
    found: dict[str, list[CandidateList]] = {}
    for number, kind in enumerate(KINDS):
        if kind in ("sentences", "passages"):
            index, settings = hybrid, {"returns": kind.removesuffix("s")}
            some: Sequence[Question] = asked
        else:
            index, settings = index_of(collection.documents, kind, encoder)
            some = asked[number % 2 :: 2]
        found[kind] = []
        for row, question in enumerate(some):
            is_alone = collection.name in NAMELESS and row // 2 % 2
            within = {"filter": {"id": question.group}} if is_alone else {}
            candidates = index.search(question.text, N_CANDIDATES, **settings, **within)
            found[kind].append(as_candidate_list(question, candidates))
    return found


def _drawn(collection: Collection, size: Size, random: np.random.Generator) -> Iterator[Question]:
    """Draw the questions of a collection; those to train on are partly made sloppy."""
    left = {False: size.questions, True: size.kept}
    for row in random.permutation(len(collection.questions)):
        question = collection.questions[row]
        is_kept = calibrates(question.group)
        if not left[is_kept] or (is_kept and not question.evidence):
            continue
        left[is_kept] -= 1
        if is_kept or collection.name in FOREIGN:
            yield question
        else:
            yield Question(
                question.id, as_typed(question.text, random), question.evidence, doc_id=question.doc_id
            )
