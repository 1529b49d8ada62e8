"""Blend a head that `train` made with the packaged `small`: the second step of the model `sage-minilm`.

    python -m training.segmentation_sage_minilm.blend DATA HEAD OUT

DATA is the folder of the training files, OUT the folder for the model. The weights of the two models' logits
are fitted on documents that `precise train` holds out, a few of every file.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from precise_rag.checkpoints.saved import load_checkpoint, packaged_model
from precise_rag.segmentation.pretrained import PACKAGED
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel
from precise_rag.segmentation.training.labelled_documents import UNKNOWN, is_held_out, read_labelled
from training.segmentation_sage_minilm.train import SENTENCES

MOST = 150
"""Sentences of a file."""


def fit_blend_weights(first: np.ndarray, second: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The (3, 2) weights of `sage.blend` for (n, 2) logits of two models; targets: (n, 2), some UNKNOWN."""
    weights = np.zeros((3, 2), dtype=np.float32)
    for column in range(2):
        known = targets[:, column] != UNKNOWN
        rows = np.stack([first[known, column], second[known, column]], axis=1)
        fit = LogisticRegression().fit(rows, targets[known, column] == 1)
        weights[:, column] = *fit.coef_[0], fit.intercept_[0]
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.segmentation_sage_minilm.blend", description=__doc__.splitlines()[0]
    )
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("head", type=Path, metavar="HEAD")
    parser.add_argument("out", type=Path, metavar="OUT")
    args = parser.parse_args()
    config, tensors = load_checkpoint(args.head)
    head = SageModel({**config, "words": None}, tensors, args.head, None, "cpu", None)
    small = SmallModel.load(packaged_model(PACKAGED["small"]))
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
    SageModel.save(args.out, {**kept, "words": words}, {**tensors, "blend": weights})


if __name__ == "__main__":
    main()
