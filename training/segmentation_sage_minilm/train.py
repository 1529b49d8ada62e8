"""Train the packaged segmentation model `sage-minilm` on a sample of every domain.

    python -m training.segmentation_sage_minilm.train DATA OUT [--cache vectors.sqlite]

DATA is the folder of the training files. A sample of their documents is used, because encoding all
sentences takes hours without a GPU; held-out documents are drawn three times as often. The head is
trained as by `precise train --family sage --words --splice 0.3`. The card is
docs/models/segmentation-sage-minilm.md.
"""

import argparse
from pathlib import Path

import numpy as np

from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.segmentation.training.fitting import TrainingSettings
from precise_rag.segmentation.training.labelled_documents import LabelledDocument, is_held_out, read_labelled
from precise_rag.segmentation.training.networks import SageConfig
from precise_rag.segmentation.training.train import train_sage

MODULE = "training.segmentation_sage_minilm.train"

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
"""Sentences to draw from each file."""

LONGEST = 2_500
"""Sentences of a document, at most; longer ones (whole novels) are left out."""


def sample(folder: Path) -> list[LabelledDocument]:
    """Draw documents of each file at random, and the held-out ones of `precise train` for 15 %."""
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
    parser = argparse.ArgumentParser(prog="python -m " + MODULE, description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of the training files")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    parser.add_argument(
        "--cache", type=Path, default=Path("vectors.sqlite"), help="file that keeps vectors (%(default)s)"
    )
    args = parser.parse_args()
    encoder = CachedEncoder(load_encoder("all-MiniLM-L6-v2"), args.cache)
    settings = TrainingSettings(epochs=10, learning_rate=1e-3, splice=0.3)
    config = SageConfig(dimension=encoder.dimension)
    command = f"python -m {MODULE} DATA OUT"
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
