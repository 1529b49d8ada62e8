"""Fit how sure the packaged reranker is in other languages than English, and save it.

    python -m training.reranker.levels OUT --data DIR --cache CACHE [--vectors FILE] [--reranker FOLDER]

The lists are those of `human.py`: questions over encyclopedias in eleven languages, and in English. In each
group a logistic regression says what the reranker's log-odds mean. Log-odds in another language are scaled
and shifted so that they mean the same as in English; their order stays. OUT gets the weights as they are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from precise_rag.checkpoints.saved import load_checkpoint, packaged_model, save_checkpoint
from precise_rag.rerank import PackagedReranker
from precise_rag.rerank.language import Language, language_of
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.types import FloatArray
from training.candidate_lists import CandidateList, new_parser
from training.human_questions import SETS
from training.kinds import KINDS
from training.reranker.human import FOREIGN, human_lists
from training.reranker.logistic_regression import fit_logistic_regression

LIKE_FOREIGN = (*(f"train/{name}" for name in KINDS["encyclopedia"]), "dev/squad")
"""English sets that are made like those in other languages."""

NO_LEVELS = {name: {"odds": 1.0, "offset": 0.0} for name in ("latin", "spaced", "unspaced")}
"""Levels that are as in English."""

FEWEST = 8
"""Candidates of a list that counts."""

Judged = tuple[FloatArray, np.ndarray, float]
"""Log-odds of the candidates of a list, which of them are relevant, and the weight of the list."""


def judged_by_language(
    named: Iterable[tuple[str, Sequence[CandidateList]]], score: Callable[[CandidateList], FloatArray]
) -> dict[Language, list[Judged]]:
    """Return the judged lists by language; the lists of one call of a set weigh as much as those of another.

    named: sets with lists. score: the probabilities of a list's candidates, calibrated for English.
    """
    found: dict[Language, list[Judged]] = {"english": [], "latin": [], "spaced": [], "unspaced": []}
    for name, lists in named:
        some = [one for one in lists if len(one.candidates) >= FEWEST]
        for one in some:
            language = language_of(one.question, (c.text for c in one.candidates))
            if (language == "english") == (name in SETS):
                found[language].append((log_odds(score(one)), one.relevant, 1.0 / len(some)))
    return found


def fit_levels(judged: Mapping[Language, Sequence[Judged]]) -> dict[str, dict[str, float]]:
    """Return scale ("odds") and "offset" of log-odds for each language that there are lists of."""
    means = {}
    for language, lists in judged.items():
        if lists:
            odds, truth, weight = zip(*lists, strict=True)
            means[language] = fit_logistic_regression([{"odds": one} for one in odds], truth, weight)
    english = means.pop("english")
    return {
        str(language): {
            "odds": mean["odds"] / english["odds"],
            "offset": (mean["offset"] - english["offset"]) / english["odds"],
        }
        for language, mean in means.items()
    }


def main() -> None:
    parser = new_parser("training.reranker.levels", __doc__)
    parser.add_argument("--reranker", type=Path, default=packaged_model("reranker"), help="default: packaged")
    options = parser.parse_args()
    config, tensors = load_checkpoint(options.reranker)
    kept = {k: v for k, v in config.items() if not k.endswith("_sha256")}
    save_checkpoint(options.out, {**kept, "levels": NO_LEVELS}, tensors)
    reranker = PackagedReranker(options.out)

    def named() -> Iterator[tuple[str, list[CandidateList]]]:
        for name, by_kind in human_lists(options):
            if name in (*LIKE_FOREIGN, *FOREIGN):
                for lists in by_kind.values():
                    yield name, lists

    judged = judged_by_language(named(), lambda one: reranker.as_in_english(one.question, one.candidates))
    levels = fit_levels(judged)
    save_checkpoint(options.out, {**kept, "levels": levels}, tensors)
    counts = {language: len(lists) for language, lists in judged.items()}
    print(f"{counts} lists; {levels}; saved in {options.out}")


if __name__ == "__main__":
    main()
