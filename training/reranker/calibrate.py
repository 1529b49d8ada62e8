"""Fit the probabilities of the packaged reranker to a trained network, and save it.

    python -m training.reranker.calibrate OUT --data DIR [--network FOLDER]

OUT is the folder for the model, FOLDER that of its network (default: the package's). The questions are in
many languages, about documents kept out of the training of the cross-encoder, too, and of which hardly any
taught the network. Each is searched in a collection of such documents; each set has the same weight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.harness.datasets import Dataset, load_development_set
from precise_rag.checkpoints import load_checkpoint, save_checkpoint
from precise_rag.encoders import load_encoder
from precise_rag.index import HybridIndex
from precise_rag.rerank.packaged import PackagedReranker
from training.candidate_lists import CandidateList, as_candidate_list, in_their_texts, is_kept, new_parser

SETS = ("multilingual", "nq", "squadshifts", "fairytaleqa", "faq", "afriqa", "medquad")
QUESTIONS, WITH_DIGITS, CHARACTERS, N_CANDIDATES = 16, 12, 350_000, 100
"""Questions of a set, further ones that hold a digit, characters of its collection, and candidates of a
question."""

_STRENGTH = 5_000.0
"""Inverse of the penalty on the squares of standardised weights."""

SCORES = {
    "meaning and words": ("dense", "dense_level", "core", "core_level", "bm25", "bm25_passage"),
    "meaning": ("dense", "dense_level", "core", "core_level"),
    "words": ("bm25",),
}
"""The search's scores that are known where a regression is used."""
PROPORTIONS = {
    "meaning and words": {"network": 0.34, "dense": 1.845, "bm25_share": 1.479, "bm25_passage_share": 2.682},
    "meaning": {"network": 0.539, "dense": 1.542},
    "words": {"network": 0.562, "bm25_share": 2.732},
    "order": {"network": 0.514, "place": -0.181},
    "text": {"network": 1.0},
}
"""Of what the regressions weigh: fitted to the order of larger lists in English, with networks that had not
been trained on the set they scored (`git show c6c0a457:training/reranker/train.py`)."""


def collection(name: str, data: str | None) -> Dataset:
    """Draw questions about documents kept out of training, with such documents around theirs."""
    dataset, random = load_development_set(name, data, "train").with_evidence(), np.random.default_rng(0)
    kept = [q for q in dataset.questions if is_kept(q.group)]
    shuffled = [kept[row] for row in random.permutation(len(kept))]
    further = [q for q in shuffled[QUESTIONS:] if any(map(str.isdigit, q.text))]
    drawn = shuffled[:QUESTIONS] + further[:WITH_DIGITS]
    needed = {one.doc_id for question in drawn for one in question.evidence}
    documents = [d for d in dataset.documents if d.id in needed]
    for row in random.permutation(len(dataset.documents)):
        one = dataset.documents[row]
        if sum(len(d.text) for d in documents) > CHARACTERS:
            break
        if one.id not in needed and is_kept(one.id):
            documents.append(one)
    return replace(dataset, documents=tuple(documents), questions=tuple(drawn))


def found_in(dataset: Dataset) -> Iterator[CandidateList]:
    """Yield what a search finds for each question, with all that the index says about it."""
    index = HybridIndex.build(list(dataset.documents), load_encoder())
    texts = {document.id: document.text for document in dataset.documents}
    for question in dataset.questions:
        found = in_their_texts(index.search(question.text, N_CANDIDATES, returns="sentence"), texts)
        yield as_candidate_list(question, found)._replace(candidates=found)


def fitted(reranker: PackagedReranker, sets: dict[str, list[CandidateList]]) -> dict[str, dict[str, float]]:
    """Return the weights of the regressions, by what is known of the retrieval."""
    every = [(one, 1.0 / len(several)) for several in sets.values() for one in several]
    truth, weight = [one.relevant for one, _ in every], [w for _, w in every]
    blends = {}
    for kind, shares in PROPORTIONS.items():
        odds = []
        for one, _ in every:
            given = [
                replace(c, scores={key: c.scores[key] for key in SCORES.get(kind, ()) if key in c.scores})
                for c in one.candidates
            ]
            columns = reranker.columns(one.question, given)
            odds.append(sum(share * columns[name] for name, share in shares.items()))
        factor, offset = fit_level(odds, truth, weight)
        blends[kind] = {name: factor * share for name, share in shares.items()} | {"offset": offset}
    return blends


def fit_level(
    odds: Sequence[np.ndarray], truth: Sequence[np.ndarray], list_weights: Sequence[float]
) -> tuple[float, float]:
    """Return the factor of log-odds and what is added to them, by cross-entropy of the candidates.

    odds: (n,) of the candidates of each list. truth: (n,) which of them are relevant. list_weights: of each
    list in the loss.
    """
    shares = [np.full(len(y), weight / max(len(y), 1)) for y, weight in zip(truth, list_weights, strict=True)]
    x, weights = np.concatenate(odds)[:, None], np.concatenate(shares) / sum(list_weights)
    mean, deviation = x.mean(), x.std() + 1e-6
    model = LogisticRegression(C=_STRENGTH, max_iter=1_000)
    model.fit((x - mean) / deviation, np.concatenate(truth), sample_weight=weights)
    factor = float(model.coef_[0, 0] / deviation)
    return factor, float(model.intercept_[0] - factor * mean)


def main() -> None:
    options = new_parser("training.reranker.calibrate", __doc__, network="reranker").parse_args()
    sets = {name: list(found_in(collection(name, options.data))) for name in SETS}
    config, tensors = load_checkpoint(options.network)
    blend = fitted(PackagedReranker(options.network), sets)
    kept = {key: config[key] for key in ("kind", "features", "seed")}
    save_checkpoint(options.out, kept | {"blend": blend}, tensors)
    print(f"{blend}; saved in {options.out}")


if __name__ == "__main__":
    main()
