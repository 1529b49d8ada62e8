"""SAGE's feature ablation (its Table X) in three protocols, on frozen and on fine-tuned sentence vectors.

    python -m benchmarks.segmentation.ablation FILE… [--test FILE] [--sentences 80000] [--only frozen]

Positives are neighbouring sentences of one paragraph. Negatives, as many: `adjacent` the two
sentences around a paragraph break; `same document` sentences of two paragraphs of one document;
`any` sentences of two documents. Accuracy on documents that are held out by id, half of the pairs
positive; the threshold is 0.5, the loss the paper's squared error. Frozen: an MLP for each cell,
on vectors of a part of the sentences, encoded once. Fine-tuned: one pass over the sentences, the
MLPs of the four feature sets and three protocols together on one encoder, or with --features all on
the last feature set alone. Prints a table with the paper's figures (fine-tuned, on QASPER) beside ours.

With --only packaged, the models in the package judge the same pairs: alone, as the paper's head does, and
in context, as they are used: the first sentence after up to 16 of its document, the second before up to 16
of its own. The threshold is the best one on pairs of the training documents. This table is saved.
"""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from benchmarks import record
from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.segmentation.pretrained import PACKAGED, load_model
from precise_rag.segmentation.training.fine_tuning import embed, trainable
from precise_rag.segmentation.training.labelled_documents import LabelledDocument, is_held_out, read_labelled

FEATURES = (
    ("x1", "x2"),
    ("x1", "x2", "x1-x2"),
    ("x1", "x2", "x1*x2"),
    ("x1", "x2", "x1-x2", "x1*x2"),
)
PROTOCOLS = ("adjacent", "same document", "any")
PAPER = ("84.5", "85.6", "88.4", "91.8")
RUN, RUNS = 6, 24
"""Fine-tuning reads neighbouring sentences by the RUN; a step has RUNS of them, two of a document where
it is long enough, so that every protocol finds its pairs in a step."""

Pairs = tuple[np.ndarray, np.ndarray]
"""(m, 2) rows of sentences, and (m,) whether the two belong together."""
Drawn = dict[tuple[str, str], Pairs]
"""The pairs of each side by each protocol."""


class Side:
    """The sentences of some documents in a line: the document and the paragraph of each."""

    def __init__(self, documents: list[LabelledDocument]) -> None:
        self.texts = [text for document in documents for text in document.sentences]
        self.starts = np.cumsum([0, *(len(document.sentences) for document in documents)])
        self.owner = np.repeat(np.arange(len(documents)), np.diff(self.starts))
        self.breaks = np.ones(len(self.texts), dtype=bool)
        for start, document in zip(self.starts, documents, strict=False):
            self.breaks[start : start + len(document.paragraph)] = document.paragraph != 0
        self.paragraph = np.cumsum(np.concatenate([[0], self.breaks[:-1]]))

    def pairs(self, protocol: str, rng: np.random.Generator, rows: np.ndarray | None = None) -> Pairs:
        """Equally many positives and negatives, among all sentences or `rows` (ascending)."""
        rows = np.arange(len(self.texts)) if rows is None else rows
        near = rows[:-1][np.diff(rows) == 1]
        near = near[self.owner[near] == self.owner[near + 1]]
        together = near[~self.breaks[near]]
        if protocol == "adjacent":
            left = near[self.breaks[near]]
            right = left + 1
        else:
            left = rng.choice(rows, 4 * len(rows))
            if protocol == "any":
                right = rng.choice(rows, 4 * len(rows))
                apart = self.owner[left] != self.owner[right]
            else:
                first = np.searchsorted(rows, self.starts[self.owner[left]])
                last = np.searchsorted(rows, self.starts[self.owner[left] + 1])
                right = rows[first + (rng.random(len(left)) * (last - first)).astype(np.int64)]
                apart = self.paragraph[left] != self.paragraph[right]
            left, right = left[apart], right[apart]
        n = min(len(together), len(left))
        together, chosen = rng.permutation(together)[:n], rng.permutation(len(left))[:n]
        found = [np.stack([together, together + 1], 1), np.stack([left[chosen], right[chosen]], 1)]
        return np.concatenate(found), np.repeat([True, False], n)

    def steps(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """(about RUN * RUNS,) rows of one step, ascending; every sentence once."""
        couples = []
        for start, end in itertools.pairwise(self.starts.tolist()):
            runs = [np.arange(first, min(first + RUN, end)) for first in range(start, end, RUN)]
            rng.shuffle(runs)
            couples += [np.concatenate(runs[place : place + 2]) for place in range(0, len(runs), 2)]
        rng.shuffle(couples)
        for place in range(0, len(couples), RUNS // 2):
            yield np.sort(np.concatenate(couples[place : place + RUNS // 2]))


def draw(
    documents: list[LabelledDocument], sentences: int, held_out_sentences: int, held_out: float = 0.05
) -> tuple[list[LabelledDocument], list[LabelledDocument]]:
    """Training documents and held-out ones of so many sentences, in seeded order."""
    chosen: tuple[list[LabelledDocument], list[LabelledDocument]] = ([], [])
    counts = [0, 0]
    for place in np.random.default_rng(0).permutation(len(documents)).tolist():
        document = documents[place]
        side = is_held_out(document.id, held_out)
        if counts[side] + len(document.sentences) <= (sentences, held_out_sentences)[side]:
            chosen[side].append(document)
            counts[side] += len(document.sentences)
    return chosen


def mlp(features: tuple[str, ...], dimension: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(len(features) * dimension, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 1)
    )


def columns(vectors: Tensor, rows: np.ndarray, features: tuple[str, ...]) -> Tensor:
    """(m, k * d) features of m pairs; the vectors' components are about 1 rather than 1 / sqrt(d)."""
    vectors = vectors * vectors.shape[1] ** 0.5
    left, right = vectors[torch.from_numpy(rows[:, 0])], vectors[torch.from_numpy(rows[:, 1])]
    sets = {"x1": left, "x2": right, "x1-x2": left - right, "x1*x2": left * right}
    return torch.cat([sets[name] for name in features], dim=1)


def error(head: nn.Module, vectors: Tensor, pairs: Pairs, features: tuple[str, ...]) -> Tensor:
    out = head(columns(vectors, pairs[0], features))[:, 0].sigmoid()
    return F.mse_loss(out, torch.from_numpy(pairs[1]).to(out))


@torch.no_grad()
def accuracy(head: nn.Module, vectors: Tensor, pairs: Pairs, features: tuple[str, ...]) -> float:
    """Share of pairs judged right, in percent."""
    head.eval()
    out = head(columns(vectors, pairs[0], features))[:, 0].numpy()
    return 100 * float(((out > 0) == pairs[1]).mean())


def frozen_head(vectors: Tensor, pairs: Pairs, features: tuple[str, ...], epochs: int) -> nn.Module:
    torch.manual_seed(0)
    head = mlp(features, vectors.shape[1])
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(len(pairs[0]))
        for first in range(0, len(order), 512):
            part = order[first : first + 512]
            optimizer.zero_grad()
            error(head, vectors, (pairs[0][part], pairs[1][part]), features).backward()
            optimizer.step()
    return head


def fine_tune(
    module: torch.nn.Module,
    train: Side,
    feature_sets: list[tuple[str, ...]],
    learning_rate: float,
    minutes: float,
) -> dict[tuple[tuple[str, ...], str], nn.Module]:
    """Train for one pass or `minutes`, changing `module`. Returns the heads by features and protocol."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    dimension = module.get_embedding_dimension()
    heads = {cell: mlp(cell[0], dimension) for cell in itertools.product(feature_sets, PROTOCOLS)}
    steps = list(train.steps(rng))
    with trainable(module):
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        groups = [
            {"params": [w for head in heads.values() for w in head.parameters()], "peak": 1e-3},
            {"params": weights, "peak": learning_rate},
        ]
        optimizer = torch.optim.AdamW(groups, lr=0.0, weight_decay=0.01)
        bar = tqdm(steps, desc="fine-tuning", mininterval=20)
        started, n_read = time.monotonic(), 0
        for step, rows in enumerate(bar):
            done = max(step / len(steps), (time.monotonic() - started) / 60 / minutes)
            if done >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * min(1.0, 10 * done + 0.01, 1.25 * (1 - done))
            vectors = embed(module, [train.texts[row] for row in rows])
            n_read += len(rows)
            losses = []
            for protocol in PROTOCOLS:
                found, labels = train.pairs(protocol, rng, rows)
                if len(labels):
                    pairs = (np.searchsorted(rows, found), labels)
                    losses += [error(heads[f, protocol], vectors, pairs, f) for f in feature_sets]
            optimizer.zero_grad()
            torch.stack(losses).sum().backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            bar.set_postfix(any=f"{losses[-1].item():.3f}", refresh=False)
    print(f"fine-tuned on {n_read:,} sentences", flush=True)
    return heads


def packaged_scores(model: Any, side: Side, rows: np.ndarray, around: int) -> np.ndarray:
    """(m,) log-odds that a paragraph ends between the two sentences of m pairs.

    around: sentences before the first and after the second that the model reads, too, in their documents.
    """
    scores = np.zeros(len(rows))
    for place, (left, right) in enumerate(rows.tolist()):
        first = max(left - around, int(side.starts[side.owner[left]]))
        end = min(right + 1 + around, int(side.starts[side.owner[right] + 1]))
        texts = side.texts[first : left + 1] + side.texts[right:end]
        scores[place] = model.predict(texts).logits[left - first, 0]
    return scores


def best_threshold(scores: np.ndarray, together: np.ndarray) -> float:
    """The threshold below which a pair is judged to belong together, with the most pairs judged right."""
    order = np.argsort(scores)
    right = np.cumsum(together[order]) - np.cumsum(~together[order])
    return float(scores[order[np.argmax(right)]])


def packaged_rows(sides: dict[str, Side], drawn: Drawn, cache: Path) -> list[dict[str, Any]]:
    """The packaged models' accuracy, in percent."""
    encoder = CachedEncoder(load_encoder("all-MiniLM-L6-v2"), cache)
    rows = []
    for name, (reads, around) in itertools.product(
        PACKAGED, (("the pair alone", 0), ("the pair in context", 16))
    ):
        model, _ = load_model(name, encoder=encoder)
        cells: dict[str, dict[str, float]] = {side: {} for side in sides}
        for protocol in PROTOCOLS:
            found = {s: packaged_scores(model, sides[s], drawn[s, protocol][0], around) for s in sides}
            threshold = best_threshold(found["training"], drawn["training", protocol][1])
            for side, scores in found.items():
                right = (scores <= threshold) == drawn[side, protocol][1]
                cells[side][protocol] = 100 * float(right.mean())
        head = {"model": f"`{name}`", "reads": reads}
        rows += [{"tested on": s} | head | figures for s, figures in cells.items() if s != "training"]
        print(*rows[1 - len(sides) :], sep="\n", flush=True)
    return rows


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__, data=False)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--test", nargs="*", type=Path, default=[], help="files tested on as a whole, each")
    parser.add_argument("--sentences", type=int, default=80_000, help="of the training documents at most")
    parser.add_argument("--frozen-sentences", type=int, default=40_000, help="of them for frozen vectors")
    parser.add_argument("--held-out-sentences", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=4, help="of the heads on frozen vectors")
    parser.add_argument("--features", choices=("each", "all"), default="each")
    parser.add_argument("--only", choices=("frozen", "fine-tuned", "packaged"), help="one part")
    parser.add_argument("--learning-rate", type=float, default=5e-5, help="of the encoder")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of fine-tuning at most")
    parser.add_argument("--cache", type=Path, default=Path("vectors.sqlite"), help="vectors computed before")
    args = parser.parse_args()
    feature_sets = list(FEATURES) if args.features == "each" else [FEATURES[-1]]
    encoder: Any = load_encoder("all-MiniLM-L6-v2")
    documents = list(read_labelled(*args.files))
    train, held_out = map(Side, draw(documents, args.sentences, args.held_out_sentences))
    known = Side(draw(documents, args.frozen_sentences, 0)[0])
    sides = {"held-out documents": held_out}
    sides |= {file.name.split(".")[0]: Side(list(read_labelled(file))) for file in args.test}
    drawn = {
        (name, protocol): side.pairs(protocol, np.random.default_rng(1))
        for name, side in {"training": known, **sides}.items()
        for protocol in PROTOCOLS
    }
    if args.only == "packaged":
        rows = packaged_rows({"training": known, **sides}, drawn, args.cache)
        sizes = ", ".join(f"{name} {len(labels):,}" for (name, p), (_, labels) in drawn.items() if p == "any")
        title, also = "Pairs of Table X, by the packaged models", f"Pairs of `any`: {sizes}."
        record.save_rows(__spec__.name, args, "segmentation", title, rows, doc=__doc__, also=also)
        return
    print(
        f"{len(train.texts):,} sentences to fine-tune on, {len(known.texts):,} of them for frozen vectors; "
        f"{encoder.name}, seed 0"
    )
    for (name, protocol), (_, labels) in drawn.items():
        print(f"{name}, {protocol}: {len(labels):,} pairs")
    print(f"| tested on | encoder | features | {' | '.join(PROTOCOLS)} | paper |\n|---|---|---|{'---:|' * 4}")

    def show(
        kind: str, features: tuple[str, ...], heads: dict[str, nn.Module], vectors: dict[str, Tensor]
    ) -> None:
        for name, rows in vectors.items():
            cells = [f"{accuracy(heads[p], rows, drawn[name, p], features):.1f}" for p in PROTOCOLS]
            cells = [name, kind, ", ".join(features), *cells, PAPER[FEATURES.index(features)]]
            print(f"| {' | '.join(cells)} |", flush=True)

    def encoded(by: Any) -> dict[str, Tensor]:
        return {name: torch.from_numpy(by.encode(side.texts)) for name, side in sides.items()}

    if args.only != "fine-tuned":
        cached = CachedEncoder(encoder, args.cache)
        texts, vectors = torch.from_numpy(cached.encode(known.texts)), encoded(cached)
        for features in feature_sets:
            heads = {p: frozen_head(texts, drawn["training", p], features, args.epochs) for p in PROTOCOLS}
            show("frozen", features, heads, vectors)
    if args.only != "frozen":
        trained = SentenceTransformerEncoder(encoder.source, device=encoder.device)
        tuned = fine_tune(trained.module, train, feature_sets, args.learning_rate, args.minutes)
        vectors = encoded(trained)
        for features in feature_sets:
            show("fine-tuned", features, {p: tuned[features, p] for p in PROTOCOLS}, vectors)


if __name__ == "__main__":
    main()
