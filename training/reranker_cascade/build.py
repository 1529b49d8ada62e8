"""Build the training lists of the cascade's cross-encoder.

    python -m training.reranker_cascade.build LISTS --data DIR [--human N] [--weak N] [--vectors FILE]

LISTS is the folder for the lists, one file for each collection of documents: of a question set, or of
training documents. Files that are there are left alone: the command goes on where it stopped, and
larger numbers add to what is there.
"""

import os
import pickle
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np

from precise_rag.protocols import Encoder
from training.candidate_lists import (
    SETS,
    CandidateList,
    Collection,
    cached_encoder,
    collections_of,
    load_trainable,
    new_parser,
)
from training.reranker_cascade.examples import CHARACTERS, Example, examples_and_kept, weak_examples
from training.weak_questions import collections

SEED = 0


def build_human(options: Namespace) -> None:
    """Write the lists of the question sets, and those of documents kept out. Sets take turns."""
    encoder = cached_encoder(options.vectors)
    several = [collections_of(load_trainable(name, options.data), CHARACTERS) for name in SETS]
    for _ in range(options.human):
        for one in several:
            if collection := next(one, None):
                build_collection(collection, encoder, options.out)


def build_collection(collection: Collection, encoder: Encoder, out: Path) -> None:
    """Write the examples of a collection and its lists kept out, if they are not there."""
    stem = f"{collection.name.replace('/', '-')}-{collection.number:03d}"
    path = out / f"human-{stem}.pickle"
    if path.exists():
        return
    random = np.random.default_rng(crc32(stem.encode()))
    examples, kept = examples_and_kept(collection, encoder, random)
    for kind, lists in kept.items():
        write(out / f"kept-{stem}-{kind}.pickle", lists)
    write(path, examples)


def build_weak(options: Namespace) -> None:
    """Write the lists of the training documents."""
    encoder = cached_encoder(None)
    for source, number, records in collections(options.data, options.weak):
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


def kept_lists(folder: Path, kind: str) -> dict[str, list[CandidateList]]:
    """Return the lists of a kind that are kept out of training, by set."""
    found: dict[str, list[CandidateList]] = {}
    for path in sorted(folder.glob(f"kept-*-{kind}.pickle")):
        name, _, _ = path.stem.removeprefix("kept-").removesuffix(f"-{kind}").rpartition("-")
        found.setdefault(name.replace("-", "/", 1), []).extend(pickle.loads(path.read_bytes()))
    return found


def main() -> None:
    parser = new_parser("training.reranker_cascade.build", __doc__)
    parser.add_argument("--human", type=int, default=100, help="collections of each question set")
    parser.add_argument("--weak", type=int, default=12, help="collections of each source, times its share")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    build_human(options)
    build_weak(options)


if __name__ == "__main__":
    main()
