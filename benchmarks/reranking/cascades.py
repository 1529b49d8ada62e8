"""How well several cascades order the same candidates: new weights against those in the package.

    python -m benchmarks.reranking.cascades FOLDER… --data DIR [--vectors FILE] [--cache DIR] [--lists LISTS]

FOLDER: saved cascades; the first is what the others are compared with. Questions and documents that
nothing was trained on: three whole sets, and the other half of four. With --lists LISTS, the folder of
`training.reranker_cascade.build`, also the lists that it keeps out of training, whose documents nothing
else was trained on. nDCG@10 of the 50 candidates, as in
`measure`, and its difference to the first cascade with the 95 % interval, questions redrawn in pairs.
--cache keeps the logits of each cascade, so that a further one costs only its own.
"""

import pickle
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.questions import UNSEEN
from benchmarks.reranking.held_out import held_out, new_parser, save
from benchmarks.reranking.measure import calibration_error, log_loss, mean_difference, quality
from precise_rag.rerank import CascadeReranker
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.types import FloatArray
from training.candidate_lists import HALVED, CandidateList
from training.human_questions import SETS
from training.reranker_cascade.build import kept_lists


class RememberingCascade(CascadeReranker):
    """A cascade that keeps the logits of what it has read.

    folder: the saved model. cache: folder for the logits; default: they are kept in memory.
    """

    def __init__(self, folder: Path, cache: Path | None) -> None:
        super().__init__(folder)
        self._path = cache and cache / f"logits-{self.weights_sha256[:16]}.pickle"
        there = self._path is not None and self._path.exists()
        self._known: dict[tuple[str, str], float] = (
            pickle.loads(self._path.read_bytes()) if self._path and there else {}
        )

    def logits(self, query: str, texts: Sequence[str]) -> FloatArray:
        new = [text for text in dict.fromkeys(texts) if (query, text) not in self._known]
        if new:
            self._known.update(
                ((query, t), float(v)) for t, v in zip(new, super().logits(query, new), strict=True)
            )
        return np.array([self._known[query, text] for text in texts], dtype=np.float32)

    def write(self) -> None:
        """Write the logits into the cache."""
        if self._path:
            self._path.write_bytes(pickle.dumps(self._known))


Found = dict[str, np.ndarray]
"""nDCG@10 of each question, by set."""


def main() -> None:
    parser = new_parser(__spec__.name, __doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--questions", type=int, help="of each set at most")
    parser.add_argument("--lists", type=Path, help="folder of lists kept out of training")
    options = parser.parse_args()
    cascades = {str(folder): RememberingCascade(folder, options.cache) for folder in options.folders}
    rankers: dict[str, Any] = {"packaged": packaged_reranker(), **cascades}
    rows: list[dict[str, Any]] = []
    found: dict[tuple[str, str], Found] = {}
    judged: dict[tuple[str, str], list[tuple[np.ndarray, np.ndarray]]] = {}
    for set_name, kind, lists in chain(held_out(options), _kept_out(options)):
        some = [one for one in lists[: options.questions] if one.candidates]
        truth = np.concatenate([one.relevant for one in some])
        for name, ranker in rankers.items():
            scores = [ranker.score(one.question, one.candidates) for one in some]
            values = np.array([quality(s, one.relevant)[0] for s, one in zip(scores, some, strict=True)])
            found.setdefault((name, kind), {})[set_name] = values
            flat = np.concatenate(scores)
            judged.setdefault((name, kind), []).append((flat, truth))
            rows.append(_row(set_name, kind, name, values, flat, truth))
            print(rows[-1], flush=True)
        for cascade in cascades.values():
            cascade.write()
    for (name, kind), pairs in judged.items():
        flat, truth = (np.concatenate(column) for column in zip(*pairs, strict=True))
        rows.append(_row("all", kind, name, np.concatenate(list(found[name, kind].values())), flat, truth))
    differences = list(_differences(found, list(rankers), options.kinds, str(options.folders[0])))
    for row in differences:
        print(row)
    save(__spec__.name, "cascades", "Cascades on the same candidates", options, rows, differences=differences)


def _kept_out(options: Namespace) -> Iterator[tuple[str, str, list[CandidateList]]]:
    """Yield (set, kind, lists) of the documents kept out of training."""
    for kind in options.kinds if options.lists else ():
        for name, lists in kept_lists(options.lists, kind).items():
            yield name, kind, lists


def _row(
    set_name: str, kind: str, name: str, values: np.ndarray, flat: np.ndarray, truth: np.ndarray
) -> dict[str, Any]:
    return {
        "set": set_name,
        "kind": kind,
        "ranker": name,
        "questions": len(values),
        "nDCG@10": float(values.mean()),
        "ECE": calibration_error(flat, truth)[0],
        "log loss": log_loss(flat, truth),
    }


def _differences(
    found: dict[tuple[str, str], Found], names: Sequence[str], kinds: Sequence[str], first: str
) -> Iterator[dict[str, Any]]:
    """Gains over the first cascade: on groups of sets, and on each set."""
    names_of_sets = dict.fromkeys(name for of_ranker in found.values() for name in of_ranker)
    kept = tuple(name for name in names_of_sets if name in SETS)
    groups = {"unseen": UNSEEN, "half seen": HALVED, "kept out": kept}
    groups |= {name: (name,) for name in names_of_sets}
    for kind in kinds:
        for label, sets in groups.items():
            theirs = {s: v for s, v in found[first, kind].items() if s in sets}
            for name in names:
                if name == first or not theirs:
                    continue
                ours = {s: v for s, v in found[name, kind].items() if s in sets}
                gain, low, high = mean_difference(theirs, ours)
                yield {"sets": label, "kind": kind, "ranker": name, "gain": gain, "low": low, "high": high}


if __name__ == "__main__":
    main()
