"""Write a trained encoder as a folder that `load_encoder` reads.

    python -m training.encoder.export OUT --trained STATE/trained.pt [--old SHARE]

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
    parser.add_argument("--trained", type=Path, required=True, help="trained.pt of train.py")
    parser.add_argument("--old", type=float, default=0.0, help="share of MiniLM's weights (%(default)s)")
    options = parser.parse_args()
    trained = torch.load(options.trained)
    save_encoder(options.out, trained["mean"], options.old)
    print(f"step {trained['step']}, saved in {options.out}")


if __name__ == "__main__":
    main()
