"""Fit the probabilities of a trained cross-encoder, and save the cascade.

    python -m training.reranker_cascade.calibrate OUT --network STATE/cooled.pt --lists LISTS --data DIR
        --vectors FILE --cache CACHE

OUT is the folder for the model. --vectors and --cache are those that `build.py` was run with. The
regression is over both judgements, the packaged reranker's and the cross-encoder's. Their proportion is
fitted on the sets that neither was trained on (LEFT_OUT), with a packaged reranker that was fitted without
them; level and spread of the probabilities on documents kept out of all sets.
"""

import pickle
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch

from precise_rag.models.checkpoint import load_checkpoint, quantized, save_checkpoint
from precise_rag.models.packaged import packaged_model
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.logistic_regression import LogisticRegression, log_odds
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pair_network import TransformerConfig
from training.candidate_lists import CandidateList, calibrates, new_parser
from training.reranker.idf_table import build_idf_table
from training.reranker.logistic_regression import fit_logistic_regression
from training.reranker.train import Network, PaddedLists, regression_columns
from training.reranker.train import fit as fit_features
from training.reranker_cascade.build import LEFT_OUT, SEED, real_lists

FEATURE_LISTS = 400
"""Lists that the packaged reranker without LEFT_OUT is fitted to, of each set and kind, at most."""

N_LISTS = {"sentences": 40, "passages": 12, "dense": 12, "bm25": 12}
"""Lists of each set for the regression, by kind, at most; of documents kept out of training."""


def save(network: Mapping[str, torch.Tensor], folder: Path, weights: Mapping[str, float]) -> None:
    """Write the trained layers, their matrices as int8, and the weights of the regression."""
    tensors = {name: tensor.numpy() for name, tensor in network.items()}
    matrices = [name for name in tensors if name.startswith("together.") and tensors[name].ndim == 2]
    sizes = TransformerConfig()
    config = {
        "kind": "cascade",
        "n_layers": sizes.n_layers,
        "n_apart": sizes.n_apart,
        "packaged_sha256": packaged_reranker().weights_sha256,
        "blend": dict(weights),
        "seed": SEED,
    }
    save_checkpoint(folder, config, quantized(tensors, matrices))


def features_without_left_out(options: Namespace, table: np.ndarray) -> Network:
    """Fit the packaged reranker's network without the sets of LEFT_OUT."""
    known = [
        PaddedLists([one for one in lists if not calibrates(one.group)][:FEATURE_LISTS], table)
        for name, _, lists in real_lists(options)
        if not any(name.endswith(left_out) for left_out in LEFT_OUT)
    ]
    return fit_features(PaddedLists.joined(known))


def kept_lists(folder: Path) -> Iterator[tuple[str, list[CandidateList]]]:
    """Yield (set, lists) of the documents kept out."""
    for path in sorted(folder.glob("kept-*.pickle")):
        name, _, kind = path.stem.removeprefix("kept-").rpartition("-")
        lists: list[CandidateList] = pickle.loads(path.read_bytes())
        if some := lists[: N_LISTS[kind]]:
            yield name, some


def fit_judgements(cascade: CascadeReranker, options: Namespace) -> dict[str, float]:
    """Fit the regression over both judgements. cascade: with the trained cross-encoder."""
    table = build_idf_table(options.data)
    features = features_without_left_out(options, table)
    packaged = LogisticRegression(load_checkpoint(packaged_model("reranker"))[0]["blend"]["ranked"])
    new, seen, truth, weight = [], [], [], []
    for name, lists in kept_lists(options.lists):
        columns = regression_columns(features, PaddedLists(lists, table))
        for one, by_features in zip(lists, columns, strict=True):
            rows, both, _ = cascade.shortlist(one.question, one.candidates)
            new.append(any(name.endswith(left_out) for left_out in LEFT_OUT))
            seen.append({**both, "packaged": log_odds(packaged(by_features)[rows])})
            truth.append(one.relevant[rows])
            weight.append(1.0 / len(lists))
        print(f"{name}: {len(lists)} lists", flush=True)
    left_out = [row for row, is_new in enumerate(new) if is_new]
    proportion = fit_logistic_regression(*([of[row] for row in left_out] for of in (seen, truth, weight)))
    print(f"proportion: {proportion}", flush=True)
    odds = [{"odds": log_odds(LogisticRegression(proportion)(columns))} for columns in seen]
    level = fit_logistic_regression(odds, truth, weight)
    scaled = {name: level["odds"] * value for name, value in proportion.items()}
    return {**scaled, "offset": scaled["offset"] + level["offset"]}


def main() -> None:
    parser = new_parser("training.reranker_cascade.calibrate", __doc__)
    parser.add_argument("--network", type=Path, required=True, help="cooled.pt or state.pt of train.py")
    parser.add_argument("--lists", type=Path, required=True, help="folder of build.py")
    options = parser.parse_args()
    network = torch.load(options.network)["network"]
    save(network, options.out, {"packaged": 1.0, "reads": 1.0, "offset": 0.0})
    weights = fit_judgements(CascadeReranker(options.out, least=0), options)
    save(network, options.out, weights)
    print(f"{weights}; saved in {options.out}")


if __name__ == "__main__":
    main()
