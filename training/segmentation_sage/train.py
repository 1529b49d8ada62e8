"""Train the packaged segmentation models `sage` and `sage-minilm` on a sample of every domain.

    python -m training.segmentation_sage.train DATA OUT [--encoder all-MiniLM-L6-v2] [--cache vectors.sqlite]

DATA is the folder of the training files. A sample of their documents is used, because encoding all
sentences takes hours without a GPU; held-out documents are drawn more often. A quarter of the documents have
their headings among the sentences. The head's logits are blended with those of the packaged `small`; the
weights of both are fitted on documents that `precise train` holds out, a few of every file.
"""

import argparse
from itertools import accumulate
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.harness.cache import CachedEncoder
from precise_rag.checkpoints import load_checkpoint, packaged_model
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.segmentation.networks import SageConfig
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.segmenter import PACKAGED
from precise_rag.segmentation.small import SmallModel
from precise_rag.segmentation.training.fitting import TrainingSettings
from precise_rag.segmentation.training.labelled_documents import (
    UNKNOWN,
    LabelledDocument,
    is_held_out,
    read_labelled,
)
from precise_rag.segmentation.training.train import train_sage

SENTENCES = {
    "train_docs_openstax": 64_800,
    "train_docs_wikipedia": 64_800,
    "train_docs_standardebooks": 50_400,
    "train_docs_cpp": 9_000,
    "train_docs_d2l": 5_400,
    "train_docs_eips": 10_800,
    "train_docs_peps": 12_600,
    "train_docs_powershell": 7_200,
    "train_docs_rust-rfcs": 12_600,
    "train_docs_rust-book": 4_500,
    "train_docs_rust-reference": 2_700,
    "train_docs_opentelemetry": 5_400,
    "train_docs_owasp-cheatsheets": 5_400,
    "train_docs_owasp-wstg": 3_600,
    "train_qa_docs_qmsum": 25_200,
    "train_qa_docs_fairytaleqa": 18_000,
    "train_docs_speeches": 9_000,
    "train_seg_wiki300": 25_200,
    "train_docs_freshwiki": 7_200,
    "train_docs_multilingual": 14_400,
    "train_docs_wikitext2": 5_400,
}
"""Sentences to draw from each file."""

MOST = 240_000
"""Sentences that are used, of all that are drawn."""

LONGEST = 2_500
"""Sentences of a document, at most; longer ones (whole novels) are left out."""

HEADINGS = 0.25
"""Share of the documents that keep their headings."""

FOR_BLEND = 150
"""Sentences of a file that the blend is fitted on."""


def sample(folder: Path) -> list[LabelledDocument]:
    """Draw documents of each file at random, 12 % of them held out; return MOST sentences of all."""
    rng = np.random.default_rng(0)
    chosen: list[LabelledDocument] = []
    for name, wanted in SENTENCES.items():
        documents = list(read_labelled(folder / f"{name}.jsonl.gz", headings=HEADINGS))
        for held_out, share in ((True, 0.12), (False, 0.88)):
            drawn = 0
            for place in rng.permutation(len(documents)):
                document = documents[place]
                n = len(document.sentences)
                if is_held_out(document.id, 0.05) == held_out and n <= LONGEST and drawn < wanted * share:
                    chosen.append(document)
                    drawn += n
    mixed = [chosen[place] for place in rng.permutation(len(chosen))]
    seen = accumulate(len(document.sentences) for document in mixed)
    return [document for document, n in zip(mixed, seen, strict=True) if n <= MOST]


def fit_blend_weights(first: np.ndarray, second: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The (3, 2) weights of `sage.blend` for (n, 2) logits of two models; targets: (n, 2), some UNKNOWN."""
    weights = np.zeros((3, 2), dtype=np.float32)
    for column in range(2):
        known = targets[:, column] != UNKNOWN
        rows = np.stack([first[known, column], second[known, column]], axis=1)
        fit = LogisticRegression().fit(rows, targets[known, column] == 1)
        weights[:, column] = *fit.coef_[0], fit.intercept_[0]
    return weights


def blended(data: Path, folder: Path) -> None:
    """Save a head again, blended with the packaged `small`. data: folder of the training files."""
    config, tensors = load_checkpoint(folder)
    head = SageModel(config, tensors, folder, None, "cpu", None)
    small = SmallModel.load(packaged_model(PACKAGED["small"]))
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for name in SENTENCES:
        n_read = 0
        for document in read_labelled(data / f"{name}.jsonl.gz"):
            if not is_held_out(document.id, 0.05) or n_read + len(document.sentences) > FOR_BLEND:
                continue
            n_read += len(document.sentences)
            targets = np.stack([document.paragraph, document.section], axis=1)
            texts = document.sentences
            found.append((head.predict(texts), small.predict(texts), targets))
        print(name, n_read, flush=True)
    weights = fit_blend_weights(*(np.concatenate(part) for part in zip(*found, strict=True)))
    words = {"model": PACKAGED["small"], "weights_sha256": small.weights_sha256}
    kept = {key: value for key, value in config.items() if not key.endswith("sha256")}
    SageModel.save(folder, {**kept, "words": words}, {**tensors, "blend": weights})


def areas(model: SageModel, documents: list[LabelledDocument]) -> list[float]:
    """Return the areas under the ROC curve of ends of paragraphs and of sections."""
    logits = np.concatenate([model.predict(document.sentences) for document in documents])
    targets = np.concatenate([np.stack([one.paragraph, one.section], axis=1) for one in documents])
    known = (targets != UNKNOWN).T
    return [roc_auc_score(targets[rows, c] == 1, logits[rows, c]) for c, rows in enumerate(known)]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.segmentation_sage.train", description=__doc__.splitlines()[0]
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of the training files")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    parser.add_argument("--encoder", default=DEFAULT_ENCODER, help="name of the encoder (%(default)s)")
    parser.add_argument(
        "--cache", type=Path, default=Path("vectors.sqlite"), help="file that keeps vectors (%(default)s)"
    )
    args = parser.parse_args()
    encoder = CachedEncoder(load_encoder(args.encoder), args.cache)
    settings = TrainingSettings(epochs=10, learning_rate=2e-3, splice=0.4)
    config = SageConfig(dimension=encoder.dimension)
    documents = sample(args.data)
    print(train_sage(documents, args.out, settings, encoder=encoder, config=config))
    blended(args.data, args.out)
    model = SageModel.load(args.out, encoder=encoder)
    print(areas(model, [document for document in documents if is_held_out(document.id, 0.05)]))


if __name__ == "__main__":
    main()
