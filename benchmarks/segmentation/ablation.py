"""SAGE's feature ablation (its Table X) in three protocols, on frozen sentence vectors.

    python benchmarks/segmentation/ablation.py FILE… [--sentences 60000] [--cache vectors.sqlite]

Positives are neighbouring sentences of one paragraph. Negatives, as many: `adjacent` the two
sentences around a paragraph break; `same document` sentences of two paragraphs of one document;
`any` sentences of two documents. Accuracy on held-out documents, where half are positives; the
threshold is 0.5. Paper, fine-tuned, on QASPER: 84.5 / 85.6 / 88.4 / 91.8 % for the four feature sets.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.segmentation.data import LabelledDocument, is_held_out, read_labelled
from precise_rag.segmentation.features import pair_features

FEATURES = (
    ("x1", "x2"),
    ("x1", "x2", "x1-x2"),
    ("x1", "x2", "x1*x2"),
    ("x1", "x2", "x1-x2", "x1*x2"),
)
PROTOCOLS = ("adjacent", "same document", "any")


def pairs(
    documents: list[LabelledDocument], protocol: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(m, 2) rows of sentences over all documents, and (m,) whether they belong together."""
    starts = np.cumsum([0, *(len(document.sentences) for document in documents)])
    total = int(starts[-1])
    owner = np.repeat(np.arange(len(documents)), np.diff(starts))
    breaks = np.ones(total, dtype=bool)
    for start, document in zip(starts, documents, strict=False):
        breaks[start : start + len(document.paragraph)] = document.paragraph != 0
    paragraph = np.cumsum(np.concatenate([[0], breaks[:-1]]))
    together = np.flatnonzero(~breaks)
    if protocol == "adjacent":
        left = np.flatnonzero(breaks[:-1] & (owner[:-1] == owner[1:]))
        right = left + 1
    else:
        left = rng.integers(0, total, 4 * total)
        if protocol == "any":
            right = rng.integers(0, total, 4 * total)
            apart = owner[left] != owner[right]
        else:
            sizes = np.diff(starts)[owner[left]]
            right = starts[owner[left]] + (rng.random(len(left)) * sizes).astype(np.int64)
            apart = paragraph[left] != paragraph[right]
        left, right = left[apart], right[apart]
    n = min(len(together), len(left))
    together = rng.permutation(together)[:n]
    chosen = rng.permutation(len(left))[:n]
    rows = np.concatenate([np.stack([together, together + 1], 1), np.stack([left[chosen], right[chosen]], 1)])
    return rows, np.concatenate([np.ones(n, dtype=bool), np.zeros(n, dtype=bool)])


def accuracy(
    vectors: tuple[np.ndarray, np.ndarray],
    rows: tuple[np.ndarray, np.ndarray],
    labels: tuple[np.ndarray, np.ndarray],
    features: tuple[str, ...],
    epochs: int,
) -> float:
    """Train on the first of each pair, test on the second."""
    torch.manual_seed(0)
    width = len(features) * vectors[0].shape[1]
    network = torch.nn.Sequential(
        torch.nn.Linear(width, 256), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(256, 1)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(len(rows[0]))
        for first in range(0, len(order), 512):
            part = order[first : first + 512]
            optimizer.zero_grad()
            out = network(columns(vectors[0], rows[0][part], features))[:, 0]
            F.mse_loss(out.sigmoid(), torch.from_numpy(labels[0][part]).float()).backward()
            optimizer.step()
    network.eval()
    with torch.no_grad():
        out = network(columns(vectors[1], rows[1], features))[:, 0].numpy()
    return float(((out > 0) == labels[1]).mean())


def columns(vectors: np.ndarray, rows: np.ndarray, features: tuple[str, ...]) -> torch.Tensor:
    return torch.from_numpy(pair_features(vectors[rows[:, 0]], vectors[rows[:, 1]], features))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sentences", type=int, default=60_000, help="of the training documents at most")
    parser.add_argument("--held-out", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--cache", type=Path, default=Path("vectors.sqlite"), help="vectors computed before")
    args = parser.parse_args()
    encoder = CachedEncoder(load_encoder(), args.cache)
    sides: tuple[list[LabelledDocument], list[LabelledDocument]] = ([], [])
    counts = [0, 0]
    for document in read_labelled(*args.files):
        held_out = is_held_out(document.id, args.held_out)
        if counts[held_out] < (args.sentences // 4 if held_out else args.sentences):
            sides[held_out].append(document)
            counts[held_out] += len(document.sentences)
    train, test = (
        encoder.encode([text for document in side for text in document.sentences]) for side in sides
    )
    print(f"{counts[0]:,} training sentences, {counts[1]:,} held out, {encoder.name} frozen, seed 0")
    print("| features | adjacent | same document | any |\n|---|---:|---:|---:|")
    drawn = [[pairs(side, protocol, np.random.default_rng(1)) for side in sides] for protocol in PROTOCOLS]
    for features in FEATURES:
        cells = [accuracy((train, test), (a[0], b[0]), (a[1], b[1]), features, args.epochs) for a, b in drawn]
        print(f"| {', '.join(features)} | {' | '.join(f'{100 * cell:.1f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
