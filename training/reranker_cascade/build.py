"""Build the training lists of the cascade's cross-encoder.

    python -m training.reranker_cascade.build LISTS --data DIR [--rounds N] [--vectors FILE] [--cache CACHE]

LISTS is the folder for the lists, one file for each question set and kind, and for each collection of
training documents. Files that are there are left alone: the command goes on where it stopped, and
a larger --rounds adds to what is there.
"""

import os
import pickle
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np

from training.candidate_lists import CandidateList, cached_encoder, calibrates, new_parser, trainable_lists
from training.question_rules import as_typed
from training.reranker_cascade.examples import Example, from_lists
from training.reranker_cascade.weak import weak_examples
from training.weak_questions import collections

SEED = 0

SETS = ("dev/squad", "dev/covidqa", "dev/fairytaleqa", "train/fairytaleqa", "dev/qmsum", "train/qmsum")
"""Question sets; of those that begin with "dev" half of the documents."""

N_KEPT = 80
"""Lists kept out of training, of each set and kind, at most."""

QUESTIONS = {"sentences": 2500, "passages": 1500, "dense": 800, "bm25": 1500}
"""Questions of each set, at most, by kind of list."""


def real_lists(options: Namespace) -> Iterator[tuple[str, str, list[CandidateList]]]:
    """Yield (set, kind, lists) of all question sets that may be trained on."""
    for name, kind, lists in trainable_lists(SETS, QUESTIONS, options, prefix="cascade/"):
        yield name.replace("/", "-"), kind, lists


def build_real(options: Namespace) -> None:
    """Write the lists of the question sets, and those of documents kept out."""
    for name, kind, lists in real_lists(options):
        path = options.out / f"kept-{name}-{kind}.pickle"
        if not path.exists():
            kept = [one for one in lists if one.candidates and calibrates(one.group)]
            write(path, [kept[row] for row in np.random.default_rng(SEED).permutation(len(kept))[:N_KEPT]])
        path = options.out / f"real-{name}-{kind}.pickle"
        if not path.exists():
            random = np.random.default_rng(crc32(path.name.encode()))
            fitting = [one for one in lists if one.candidates and not calibrates(one.group)]
            asked = [one._replace(question=as_typed(one.question, random)) for one in fitting]
            write(path, list(from_lists(asked, kind, name.partition("-")[2], random)))


def build_weak(options: Namespace) -> None:
    """Write the lists of the training documents."""
    encoder = cached_encoder(None)
    for source, number, records in collections(options.data, options.rounds):
        path = options.out / f"weak-{source}-{number:03d}.pickle"
        if not path.exists():
            random = np.random.default_rng(crc32(path.name.encode()))
            write(path, list(weak_examples(records, source, number, encoder, random)))


def write(path: Path, examples: Sequence[Example] | Sequence[CandidateList]) -> None:
    """Write a file of lists; it is there as a whole or not at all."""
    part = path.with_suffix(".part")
    part.write_bytes(pickle.dumps(list(examples)))
    os.replace(part, path)
    print(f"{path.name}: {len(examples)} lists", flush=True)


def read(path: Path) -> list[Example]:
    """Read a file of examples."""
    examples: list[Example] = pickle.loads(path.read_bytes())
    return examples


def main() -> None:
    parser = new_parser("training.reranker_cascade.build", __doc__)
    parser.add_argument("--rounds", type=int, default=12, help="collections of each source, times its share")
    parser.add_argument("--only", choices=("real", "weak"), help="one part, to build both side by side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.only != "weak":
        build_real(options)
    if options.only != "real":
        build_weak(options)


if __name__ == "__main__":
    main()
