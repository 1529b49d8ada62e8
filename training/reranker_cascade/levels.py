"""Fit how sure the cascade is in other languages that use Latin letters, and save it.

    python -m training.reranker_cascade.levels OUT --data DIR --cache CACHE [--cascade FOLDER]

As `training.reranker.levels` does it for the packaged reranker, over lists of sentences of documents that are
kept out of training. OUT gets the weights as they are.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from precise_rag.checkpoints.saved import load_checkpoint, packaged_model, save_checkpoint
from precise_rag.rerank import CascadeReranker
from training.candidate_lists import CandidateList, calibrates, new_parser
from training.reranker.human import FOREIGN, human_lists
from training.reranker.levels import LIKE_FOREIGN, NO_LEVELS, fit_levels, judged_by_language

LISTS = 40
"""Lists of a set, at most."""


def main() -> None:
    parser = new_parser("training.reranker_cascade.levels", __doc__)
    parser.add_argument(
        "--cascade", type=Path, default=packaged_model("reranker-cascade"), help="default: packaged"
    )
    options = parser.parse_args()
    config, tensors = load_checkpoint(options.cascade)
    kept = {k: v for k, v in config.items() if not k.endswith("_sha256") or k == "packaged_sha256"}
    save_checkpoint(options.out, {**kept, "latin": NO_LEVELS["latin"]}, tensors)
    cascade = CascadeReranker(options.out)

    def named() -> Iterator[tuple[str, list[CandidateList]]]:
        for name, by_kind in human_lists(options):
            if name in (*LIKE_FOREIGN, *FOREIGN):
                some = [one for one in by_kind["sentences"] if calibrates(one.group)]
                drawn = np.random.default_rng(0).permutation(len(some))[:LISTS]
                yield name, [some[row] for row in drawn]

    judged = judged_by_language(named(), lambda one: cascade.score(one.question, one.candidates))
    latin = fit_levels({"english": judged["english"], "latin": judged["latin"]})["latin"]
    save_checkpoint(options.out, {**kept, "latin": latin}, tensors)
    counts = {language: len(lists) for language, lists in judged.items()}
    print(f"{counts} lists; {latin}; saved in {options.out}")


if __name__ == "__main__":
    main()
