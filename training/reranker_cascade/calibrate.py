"""Fit the probabilities of a trained cross-encoder, and save the cascade.

    python -m training.reranker_cascade.calibrate OUT --lists LISTS [--network STATE/network.pt …]

OUT is the folder for the model. Of several networks the mean of the weights is taken, with --old SHARE of
those in the package: the mean knows what each knows, and new kinds of text suffer less. Without a network
those in the package stay, which is enough after a training of the packaged reranker. The regression is
over both judgements, the packaged reranker's and the cross-encoder's. Their proportion is that of the
cascade in the package, which was fitted on sets that neither was trained on. Level and spread of the
probabilities, and a regression for candidates that are not read, are fitted on documents kept out of all
sets. With --as-packaged all of that stays as it is in the package.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from precise_rag.checkpoints.quantized import dequantized, quantized
from precise_rag.checkpoints.saved import load_checkpoint, packaged_model, save_checkpoint
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pair_network import TransformerConfig
from training.candidate_lists import CandidateList
from training.reranker.levels import NO_LEVELS
from training.reranker.logistic_regression import fit_logistic_regression
from training.reranker_cascade.build import SEED, kept_lists

Weights = Mapping[str, Mapping[str, float]]
"""The weights of both regressions, "blend" and "unread", and of "latin", see `training.reranker.levels`."""

N_LISTS = {"sentences": 20, "passages": 6, "dense": 6, "bm25": 6}
"""Lists of each set for the regression, by kind, at most; of documents kept out of training."""


def save(network: Mapping[str, torch.Tensor], folder: Path, weights: Weights) -> None:
    """Write the trained layers, their matrices as int8, and the weights of the regressions."""
    tensors = {name: tensor.numpy() for name, tensor in network.items()}
    matrices = [name for name in tensors if name.startswith("together.") and tensors[name].ndim == 2]
    sizes = TransformerConfig()
    config = {
        "kind": "cascade",
        "n_layers": sizes.n_layers,
        "n_apart": sizes.n_apart,
        "packaged_sha256": packaged_reranker().weights_sha256,
        **{name: dict(of_one) for name, of_one in weights.items()},
        "seed": SEED,
    }
    save_checkpoint(folder, config, quantized(tensors, matrices))


def averaged(networks: Sequence[Mapping[str, torch.Tensor]], old: float) -> dict[str, torch.Tensor]:
    """Return the mean weights of networks, with a share of those in the package."""
    packaged = dequantized(load_checkpoint(packaged_model("reranker-cascade"))[1])
    if not networks:
        return {name: torch.from_numpy(tensor) for name, tensor in packaged.items()}
    return {
        name: old * torch.from_numpy(packaged[name])
        + (1.0 - old) * torch.stack([network[name].float() for network in networks]).mean(0)
        for name in networks[0]
    }


def lists_of_sets(folder: Path) -> Iterator[tuple[str, list[CandidateList]]]:
    """Yield (set, lists) of the documents kept out."""
    for kind, most in N_LISTS.items():
        for name, lists in kept_lists(folder, kind).items():
            yield name, [one for one in lists if one.candidates][:most]


def fit_judgements(cascade: CascadeReranker, folder: Path) -> Weights:
    """Fit both regressions. cascade: with a cross-encoder that was trained further from the package's."""
    blend = load_checkpoint(packaged_model("reranker-cascade"))[0]["blend"]
    share = blend["reads"] / blend["packaged"]
    odds, truth, weight = [], [], []
    left, left_truth, left_weight = [], [], []
    for name, lists in lists_of_sets(folder):
        for one in lists:
            rows, columns, packaged, _ = cascade.shortlist(one.question, one.candidates)
            odds.append({"odds": columns["packaged"] + share * columns["reads"]})
            truth.append(one.relevant[rows])
            weight.append(1.0 / len(lists))
            if len(unread := np.setdiff1d(np.arange(len(packaged)), rows)):
                left.append({"packaged": log_odds(packaged[unread])})
                left_truth.append(one.relevant[unread])
                left_weight.append(1.0 / len(lists))
        print(f"{name}: {len(lists)} lists", flush=True)
    level = fit_logistic_regression(odds, truth, weight)
    return {
        "blend": {
            "packaged": level["odds"],
            "reads": level["odds"] * share,
            "offset": level["offset"],
        },
        "unread": fit_logistic_regression(left, left_truth, left_weight),
        "latin": NO_LEVELS["latin"],
    }


def main() -> None:
    parser = ArgumentParser(prog="python -m training.reranker_cascade.calibrate", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    parser.add_argument("--network", type=Path, nargs="+", default=[], help="network.pt of train.py")
    parser.add_argument("--lists", type=Path, help="folder of build.py; needed to fit anything")
    parser.add_argument("--as-packaged", action="store_true", help="keep the regressions of the package")
    parser.add_argument(
        "--old", type=float, default=0.0, help="share of the weights in the package (%(default)s)"
    )
    options = parser.parse_args()
    if options.lists is None and not options.as_packaged:
        parser.error("--lists is needed; --as-packaged fits nothing")
    network = averaged([torch.load(p, map_location="cpu") for p in options.network], options.old)
    if options.as_packaged:
        config, _ = load_checkpoint(packaged_model("reranker-cascade"))
        save(network, options.out, {name: config[name] for name in ("blend", "unread", "latin")})
        return
    first = {"packaged": 1.0, "reads": 1.0, "offset": 0.0}
    save(
        network,
        options.out,
        {"blend": first, "unread": {"packaged": 1.0, "offset": 0.0}, "latin": NO_LEVELS["latin"]},
    )
    cascade = CascadeReranker(options.out, least=0)
    weights = fit_judgements(cascade, options.lists)
    save(network, options.out, weights)
    print(f"{weights}; saved in {options.out}")


if __name__ == "__main__":
    main()
