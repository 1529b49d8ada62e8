"""Blend the packaged head of `sage-minilm` with another `small`, by new weights for the two.

    python -m training.segmentation_sage_minilm.blend DATA SMALL OUT

DATA is the folder of the training files, SMALL that of the new small model, OUT the folder for the model. The
head stays; the weights are fitted on documents that `precise train` holds out, a few of every file.
"""

import argparse
from pathlib import Path

import numpy as np

from precise_rag.checkpoints.saved import load_checkpoint
from precise_rag.models.packaged import packaged_model
from precise_rag.segmentation.pretrained import PACKAGED
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel
from precise_rag.segmentation.training.blending import fit_blend_weights
from precise_rag.segmentation.training.labelled_documents import is_held_out, read_labelled
from training.segmentation_sage_minilm.train import SENTENCES

MOST = 150
"""Sentences of a file."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.segmentation_sage_minilm.blend", description=__doc__.splitlines()[0]
    )
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("small", type=Path, metavar="SMALL")
    parser.add_argument("out", type=Path, metavar="OUT")
    args = parser.parse_args()
    source = packaged_model(PACKAGED["sage-minilm"])
    config, tensors = load_checkpoint(source)
    head = SageModel({**config, "words": None}, tensors, source, None, "cpu", None)
    small = SmallModel.load(args.small)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for name in SENTENCES:
        n_read = 0
        for document in read_labelled(args.data / f"{name}.jsonl.gz"):
            if not is_held_out(document.id, 0.05) or n_read + len(document.sentences) > MOST:
                continue
            n_read += len(document.sentences)
            targets = np.stack([document.paragraph, document.section], axis=1)
            texts = document.sentences
            found.append((head.predict(texts).logits, small.predict(texts).logits, targets))
        print(name, n_read, flush=True)
    weights = fit_blend_weights(*(np.concatenate(part) for part in zip(*found, strict=True)))
    print(weights)
    words = {"model": PACKAGED["small"], "weights_sha256": small.weights_sha256}
    kept = {key: value for key, value in config.items() if not key.endswith("sha256")}
    SageModel.save(args.out, {**kept, "options": {}, "words": words}, {**tensors, "blend": weights})


if __name__ == "__main__":
    main()
