"""Train the packaged `sage-minilm` head: a sample of every domain, each sentence encoded once.

    python benchmarks/segmentation/train_sage_minilm.py DATA OUT [--cache vectors.sqlite]

DATA is the folder of the training files. All of their 1.3 million sentences would take hours to
encode without a GPU; the sample is drawn by document, held-out documents three times as often, and
the head trained on it with the settings that `precise train --family sage` has by default.
"""

import argparse
from pathlib import Path

from ablation import draw

from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.segmentation.data import LabelledDocument, read_labelled
from precise_rag.segmentation.fitting import TrainingSettings
from precise_rag.segmentation.model import SageConfig
from precise_rag.segmentation.train import train_sage

FEW = {
    "train_docs_standardebooks": 10_000,
    "train_qa_docs_qmsum": 5_000,
    "train_qa_docs_fairytaleqa": 5_000,
    "train_docs_multilingual": 5_000,
    "train_docs_speeches": 3_000,
    "train_docs_freshwiki": 2_000,
    "train_seg_wiki300": 2_000,
}
"""Files of domains that count less, with the training sentences wanted of each."""

MANY = (
    "openstax wikipedia peps rust-rfcs cpp eips d2l powershell owasp-cheatsheets owasp-wstg "
    "opentelemetry rust-book rust-reference"
)
"""Textbooks, encyclopedia and documentation: drawn together, by document."""


def sample(folder: Path) -> list[LabelledDocument]:
    files = [folder / f"train_docs_{name}.jsonl.gz" for name in MANY.split()]
    train, held_out = draw(list(read_labelled(*files)), 40_000, 10_000)
    for name, wanted in FEW.items():
        more, held_out_too = draw(list(read_labelled(folder / f"{name}.jsonl.gz")), wanted, wanted // 5)
        train, held_out = train + more, held_out + held_out_too
    return train + held_out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("vectors.sqlite"), help="vectors computed before")
    args = parser.parse_args()
    encoder = CachedEncoder(load_encoder("all-MiniLM-L6-v2"), args.cache)
    settings = TrainingSettings(epochs=10, learning_rate=1e-3)
    config = SageConfig(dimension=encoder.dimension)
    command = "python benchmarks/segmentation/train_sage_minilm.py DATA OUT"
    report = train_sage(
        sample(args.data), args.out, settings, encoder=encoder, config=config, command=command
    )
    print({name: value for name, value in report.items() if name != "domains"})


if __name__ == "__main__":
    main()
