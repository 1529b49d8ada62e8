"""Train the packaged segmentation model `small`.

    python -m training.segmentation_small.train DATA FIRST
    python -m training.segmentation_small.train DATA SECOND --start FIRST --headings 0.5
    python -m training.segmentation_small.train DATA OUT --start SECOND --headings 0.1

DATA is the folder of the training files. The first step trains on text without headings, the second goes on
with the headings of half of the documents and with text joined from several documents, the third with the
headings of a tenth, so that sections are found where no heading shows them. The card is
docs/models.md.
"""

import argparse
from pathlib import Path

from precise_rag.encoders import load_encoder
from precise_rag.encoders.local import MINILM
from precise_rag.segmentation.training.fitting import TrainingSettings
from precise_rag.segmentation.training.labelled_documents import read_labelled
from precise_rag.segmentation.training.train import train_small
from training.segmentation_sage.train import SENTENCES

FILES = (*SENTENCES, "train_docs_opensource-guide")
"""Training files, without Brown, Choi and RGB, whose licences forbid commercial use."""

STEPS = {
    0.0: TrainingSettings(epochs=4),
    0.5: TrainingSettings(epochs=3, splice=0.2, learning_rate=1e-3),
    0.1: TrainingSettings(epochs=2, splice=0.15, learning_rate=1e-3),
}
"""Settings of the three steps, by their share of documents with headings."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.segmentation_small.train", description=__doc__.splitlines()[0]
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of the training files")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    parser.add_argument("--start", type=Path, metavar="MODEL", help="a further step, from this model")
    shared = "share of the documents with headings, in a further step (0.5)"
    parser.add_argument("--headings", type=float, choices=STEPS, help=shared)
    args = parser.parse_args()
    headings = (args.headings or 0.5) if args.start else 0.0
    documents = list(read_labelled(*(args.data / f"{name}.jsonl.gz" for name in FILES), headings=headings))
    encoder = None if args.start else load_encoder(MINILM)
    print(train_small(documents, args.out, STEPS[headings], encoder=encoder, start=args.start))


if __name__ == "__main__":
    main()
