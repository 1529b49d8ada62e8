"""Train the packaged `sage-minilm` head: a sample of every domain, each sentence encoded once.

    python benchmarks/segmentation/train_sage_minilm.py DATA OUT [--cache vectors.sqlite]

DATA is the folder of the training files. All of their 1.3 million sentences would take hours to
encode without a GPU; the sample is drawn by document, held-out documents three times as often, and
the head trained on it as by `precise train --family sage --words --splice 0.3`.
"""

import argparse
from pathlib import Path

import numpy as np

from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.segmentation.training.data import LabelledDocument, is_held_out, read_labelled
from precise_rag.segmentation.training.fitting import TrainingSettings
from precise_rag.segmentation.training.networks import SageConfig
from precise_rag.segmentation.training.train import train_sage

SENTENCES = {
    "train_docs_openstax": 30_000,
    "train_docs_wikipedia": 24_000,
    "train_docs_standardebooks": 20_000,
    "train_docs_cpp": 4_000,
    "train_docs_d2l": 3_000,
    "train_docs_eips": 4_000,
    "train_docs_peps": 5_000,
    "train_docs_powershell": 3_000,
    "train_docs_rust-rfcs": 5_000,
    "train_docs_rust-book": 2_500,
    "train_docs_rust-reference": 1_500,
    "train_docs_opentelemetry": 2_500,
    "train_docs_owasp-cheatsheets": 2_500,
    "train_docs_owasp-wstg": 2_000,
    "train_qa_docs_qmsum": 7_000,
    "train_qa_docs_fairytaleqa": 6_000,
    "train_docs_speeches": 4_000,
    "train_seg_wiki300": 6_000,
    "train_docs_freshwiki": 3_000,
    "train_docs_multilingual": 3_000,
    "train_docs_wikitext2": 2_000,
}
"""Sentences wanted of each file."""

LONGEST = 2_500
"""Longer documents (whole novels) are left out, so that many are seen."""


def sample(folder: Path) -> list[LabelledDocument]:
    rng = np.random.default_rng(0)
    chosen: list[LabelledDocument] = []
    for name, wanted in SENTENCES.items():
        documents = list(read_labelled(folder / f"{name}.jsonl.gz"))
        for held_out, share in ((True, 0.15), (False, 0.85)):
            drawn = 0
            for place in rng.permutation(len(documents)):
                document = documents[place]
                n = len(document.sentences)
                if is_held_out(document.id, 0.05) == held_out and n <= LONGEST and drawn < wanted * share:
                    chosen.append(document)
                    drawn += n
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("vectors.sqlite"), help="vectors computed before")
    args = parser.parse_args()
    encoder = CachedEncoder(load_encoder("all-MiniLM-L6-v2"), args.cache)
    settings = TrainingSettings(epochs=10, learning_rate=1e-3, splice=0.3)
    config = SageConfig(dimension=encoder.dimension)
    command = "python benchmarks/segmentation/train_sage_minilm.py DATA OUT"
    report = train_sage(
        sample(args.data),
        args.out,
        settings,
        encoder=encoder,
        config=config,
        words="segmentation-small",
        command=command,
    )
    print({name: value for name, value in report.items() if name != "domains"})


if __name__ == "__main__":
    main()
