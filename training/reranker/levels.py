"""Fit how sure a reranker in the package is in other languages than English, and save it.

    python -m training.reranker.levels OUT --data DIR --cache CACHE [--vectors FILE] [--cascade]

The lists are of questions over encyclopedias in eleven languages, and in English. In each group a logistic
regression says what the reranker's log-odds mean. Log-odds in another language are scaled and shifted so that
they mean the same as in English; their order stays. OUT gets the weights as they are. The packaged reranker
has levels for all scripts; the cascade, fitted on documents kept out of its training, for Latin letters.
"""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.harness.datasets import Question
from precise_rag.checkpoints.saved import load_checkpoint, packaged_model, save_checkpoint
from precise_rag.index import HybridIndex
from precise_rag.protocols import Encoder
from precise_rag.rerank import CascadeReranker, PackagedReranker
from precise_rag.rerank.language import Language, language_of
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.types import FloatArray
from training.candidate_lists import (
    HUMAN_SETS,
    KINDS,
    N_CANDIDATES,
    SETS,
    CandidateList,
    Collection,
    as_candidate_list,
    cached_encoder,
    calibrates,
    collections_of,
    index_of,
    load_trainable,
    made_once,
    new_parser,
)
from training.question_rules import as_typed
from training.reranker.logistic_regression import fit_logistic_regression

LANGUAGES = ("ar", "fa", "fr", "he", "nb", "pt", "th", "tr", "zh", "zh-hant")
"""Languages of the set multilingual that are used. Japanese comes from jaquad."""

FOREIGN = (*(f"train/multilingual/{name}" for name in LANGUAGES), "train/jaquad")
"""Question sets in other languages than English."""

LIKE_FOREIGN = (*(f"train/{name}" for name in HUMAN_SETS["encyclopedia"]), "dev/squad")
"""English sets that are made like those in other languages."""

SIZES = dict.fromkeys(LIKE_FOREIGN, (60_000, 100, 50)) | dict.fromkeys(FOREIGN, (30_000, 80, 40))
"""Characters of the collection of each set, and its questions, at most: those to train on, and the others."""

OF_CASCADE = 40
"""Lists of a set that the cascade's levels are fitted on, at most."""

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


def human_lists(options: Namespace) -> Iterator[tuple[str, dict[str, list[CandidateList]]]]:
    """Yield (set, lists by kind) of a collection of each set. options.cache: folder that keeps them.

    They hold the documents that `calibrates` keeps out, and questions about them.
    """
    encoder = cached_encoder(options.vectors)
    for name in SIZES:
        key = f"human-{name.replace('/', '-')}-0"
        yield name, made_once(options.cache, key, partial(_lists, name, encoder, options.data))


def _lists(name: str, encoder: Encoder, data: str | None) -> dict[str, list[CandidateList]]:
    collection = next(collections_of(load_trainable(name, data), SIZES[name][:1]))
    random = np.random.default_rng(crc32(f"{collection.name} {collection.number}".encode()))
    asked = list(_drawn(collection, random))
    hybrid: Any = HybridIndex.build(collection.documents, encoder)
    found: dict[str, list[CandidateList]] = {}
    for number, kind in enumerate(KINDS):
        if kind in ("sentences", "passages"):
            search, some = partial(hybrid.search, returns=kind.removesuffix("s")), asked
        else:
            index, settings = index_of(collection.documents, kind, encoder)
            search, some = partial(index.search, **settings), asked[number % 2 :: 2]
        found[kind] = [as_candidate_list(one, search(one.text, N_CANDIDATES)) for one in some]
    return found


def _drawn(collection: Collection, random: np.random.Generator) -> Iterator[Question]:
    """Draw the questions of a collection; those to train on are partly made sloppy."""
    _, n_training, n_kept = SIZES[collection.name]
    left = {False: n_training, True: n_kept}
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


def lists_of_cascade(by_kind: Mapping[str, Sequence[CandidateList]]) -> list[CandidateList]:
    """Draw from the lists of sentences, of documents that are kept out of training."""
    some = [one for one in by_kind["sentences"] if calibrates(one.group)]
    return [some[row] for row in np.random.default_rng(0).permutation(len(some))[:OF_CASCADE]]


def main() -> None:
    parser = new_parser("training.reranker.levels", __doc__)
    parser.add_argument("--cascade", action="store_true", help="of the cascade; default: of the packaged one")
    options = parser.parse_args()
    config, tensors = load_checkpoint(packaged_model("reranker-cascade" if options.cascade else "reranker"))
    kept = {name: v for name, v in config.items() if name not in ("weights_sha256", "config_sha256")}
    kept |= {"latin": NO_LEVELS["latin"]} if options.cascade else {"levels": NO_LEVELS}
    save_checkpoint(options.out, kept, tensors)
    if options.cascade:
        score = CascadeReranker(options.out).score
        named = ((name, lists_of_cascade(by_kind)) for name, by_kind in human_lists(options))
    else:
        score = PackagedReranker(options.out).as_in_english
        named = ((name, lists) for name, by_kind in human_lists(options) for lists in by_kind.values())
    judged = judged_by_language(named, lambda one: score(one.question, one.candidates))
    levels = fit_levels(judged)
    kept |= {"latin": levels["latin"]} if options.cascade else {"levels": levels}
    save_checkpoint(options.out, kept, tensors)
    counts = {language: len(lists) for language, lists in judged.items()}
    print(f"{counts} lists; {levels}; saved in {options.out}")


if __name__ == "__main__":
    main()
