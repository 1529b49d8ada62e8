"""Write a trained encoder as a folder that `load_encoder` reads.

    python -m training.encoder.export OUT --state STATE [--old SHARE]

It has the mean of the weights over the last steps, averaged with --old SHARE of MiniLM's: the mean keeps what
MiniLM knows about texts that are like each other, and kinds of text that are not in the training suffer less.
"""

from argparse import ArgumentParser
from pathlib import Path

import torch

from training.encoder.network import save_encoder


def main() -> None:
    parser = ArgumentParser(prog="python -m training.encoder.export", description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the encoder")
    parser.add_argument("--state", type=Path, required=True, help="folder of train.py")
    parser.add_argument("--old", type=float, default=0.0, help="share of MiniLM's weights (%(default)s)")
    options = parser.parse_args()
    state = torch.load(options.state / "state.pt", map_location="cpu")
    save_encoder(options.out, state["mean"], options.old)
    print(f"step {state['step']}, saved in {options.out}")


if __name__ == "__main__":
    main()
