"""Save a trained reader, with the regressions of the one in the package or of its first export.

    python -m training.reader.export OUT --state STATE

OUT is the folder for the model. `training.answered.fit` fits the regressions.
"""

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path

import torch

from precise_rag.checkpoints.quantized import quantized
from precise_rag.checkpoints.saved import save_checkpoint
from precise_rag.rerank.pairs import TransformerConfig

FIRST = {
    "answer": {"margin": 0.5, "prior": 0.75, "offset": 0.0},
    "answered": {"margin": 0.5, "covered": 0.0, "named": 0.0, "best": 0.0, "offset": 0.0},
    "answered_alone": {"margin": 0.5, "covered": 0.0, "named": 0.0, "offset": 0.0},
}
"""The regressions before they are fitted."""


def save(
    network: Mapping[str, torch.Tensor], folder: Path, regressions: Mapping[str, Mapping[str, float]]
) -> None:
    """Write the trained layers, their matrices as int8, and the weights of the regressions."""
    tensors = {name: tensor.float().numpy() for name, tensor in network.items()}
    matrices = [name for name in tensors if name.startswith("together.") and tensors[name].ndim == 2]
    sizes = TransformerConfig()
    config = {
        "kind": "reader",
        "n_layers": sizes.n_layers,
        "n_apart": sizes.n_apart,
        **{name: dict(weights) for name, weights in regressions.items()},
        "seed": 0,
    }
    save_checkpoint(folder, config, quantized(tensors, matrices))


def main() -> None:
    parser = ArgumentParser(prog="python -m training.reader.export", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    parser.add_argument("--state", type=Path, required=True, help="folder of train.py")
    options = parser.parse_args()
    save(torch.load(options.state / "network.pt"), options.out, FIRST)


if __name__ == "__main__":
    main()
