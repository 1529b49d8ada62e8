"""SAGE, Table X and Figure 7: whether two sentences belong together, and what segmentation costs.

    python -m benchmarks.papers.segmentation FILE… --data DIR [--test FILE]

Table X. Positives are neighbouring sentences of one paragraph. Negatives, as many: `adjacent` the two
sentences around a paragraph break; `same document` sentences of two paragraphs of one document; `any`
sentences of two documents. Accuracy of the packaged models on documents of the FILEs that are held out by id,
and on --test as a whole, half of the pairs positive: alone, as the paper's head does (91.8 % on QASPER,
fine-tuned there), and in context, as they are used: the first sentence after up to 16 of its document, the
second before up to 16 of its own. The threshold is the best one on pairs of the training documents.

Figure 7. What differs from the paper: the CPU of this machine for a rented RTX 3090; FairytaleQA for
NarrativeQA; GPT-4 was not asked: its time and price are the paper's own (section I: 8 hours and 90 dollars
for a million tokens), and a second of ours costs what a second of the paper's server does (5.3 dollars a
day). Three documents of each set. Times are CPU times on one thread, models loaded, nothing cached; the rest
of indexing is encoding the chunks.
"""

import time
from argparse import Namespace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import load_development_set
from benchmarks.harness.tables import about, cached_encoder, save, sets_parser, table
from precise_rag.encoders import load_encoder
from precise_rag.segmentation import Segmenter
from precise_rag.segmentation.segmenter import PACKAGED, load_model
from precise_rag.segmentation.training.labelled_documents import LabelledDocument, is_held_out, read_labelled

PROTOCOLS = ("adjacent", "same document", "any")

GPT_4_SECONDS, GPT_4_DOLLARS = 8 * 3600 / 1e6, 90 / 1e6
"""For one token (SAGE, section I)."""
SERVER_DOLLARS = 5.3 / 86_400
"""For one second (SAGE, section VII-F)."""
PAPER_SAVED = {"quality": (90.71, 99.69), "fairytaleqa": (89.43, 99.65), "qasper": (91.49, 99.72)}
"""Percent of GPT-4's time and money saved (Figure 7)."""
N_DOCUMENTS = 3

Pairs = tuple[np.ndarray, np.ndarray]
"""(m, 2) rows of sentences, and (m,) whether the two belong together."""


class Sentences:
    """The sentences of some documents in a line: the document and the paragraph of each."""

    def __init__(self, documents: list[LabelledDocument]) -> None:
        self.texts = [text for document in documents for text in document.sentences]
        self.starts = np.cumsum([0, *(len(document.sentences) for document in documents)])
        self.owner = np.repeat(np.arange(len(documents)), np.diff(self.starts))
        self.breaks = np.ones(len(self.texts), dtype=bool)
        for start, document in zip(self.starts, documents, strict=False):
            self.breaks[start : start + len(document.paragraph)] = document.paragraph != 0
        self.paragraph = np.cumsum(np.concatenate([[0], self.breaks[:-1]]))

    def pairs(self, protocol: str) -> Pairs:
        """Equally many positives and negatives."""
        rng = np.random.default_rng(1)
        n = len(self.texts)
        near = np.flatnonzero(self.owner[:-1] == self.owner[1:])
        together = near[~self.breaks[near]]
        left = near[self.breaks[near]] if protocol == "adjacent" else rng.choice(n, 4 * n)
        if protocol == "adjacent":
            right = left + 1
        elif protocol == "any":
            right = rng.choice(n, 4 * n)
            apart = self.owner[left] != self.owner[right]
        else:
            first, last = self.starts[self.owner[left]], self.starts[self.owner[left] + 1]
            right = first + (rng.random(len(left)) * (last - first)).astype(np.int64)
            apart = self.paragraph[left] != self.paragraph[right]
        if protocol != "adjacent":
            left, right = left[apart], right[apart]
        size = min(len(together), len(left))
        together, chosen = rng.permutation(together)[:size], rng.permutation(len(left))[:size]
        found = [np.stack([together, together + 1], 1), np.stack([left[chosen], right[chosen]], 1)]
        return np.concatenate(found), np.repeat([True, False], size)


def draw(documents: list[LabelledDocument], sentences: int, held_out: bool) -> list[LabelledDocument]:
    """Documents for training, or held-out ones, of so many sentences, in seeded order."""
    chosen, size = [], 0
    for place in np.random.default_rng(0).permutation(len(documents)).tolist():
        document = documents[place]
        if is_held_out(document.id, 0.05) == held_out and size + len(document.sentences) <= sentences:
            chosen.append(document)
            size += len(document.sentences)
    return chosen


def table_x(args: Namespace, encoder: Any) -> list[dict[str, Any]]:
    """Accuracy of the packaged models, in percent."""
    documents = list(read_labelled(*args.files))
    training = Sentences(draw(documents, args.sentences, held_out=False))
    sides = {"held-out documents": Sentences(draw(documents, args.sentences // 4, held_out=True))}
    sides |= {file.name.split(".")[0]: Sentences(list(read_labelled(file))) for file in args.test}
    drawn = {name: {p: side.pairs(p) for p in PROTOCOLS} for name, side in sides.items()}
    known = {p: training.pairs(p) for p in PROTOCOLS}
    rows = []
    for model_name, (reads, around) in product(
        PACKAGED, (("the pair alone", 0), ("the pair in context", 16))
    ):
        model, _ = load_model(model_name, encoder=encoder)
        limits = {
            protocol: best_threshold(breaks_at(model, training, pairs, around), truth)
            for protocol, (pairs, truth) in known.items()
        }
        for name, side in sides.items():
            row: dict[str, Any] = {"tested on": name, "judged by": f"`{model_name}`, {reads}"}
            for protocol, (pairs, truth) in drawn[name].items():
                right = (breaks_at(model, side, pairs, around) <= limits[protocol]) == truth
                row[protocol] = 100 * float(right.mean())
            rows.append(row)
    return rows


def breaks_at(model: Any, side: Sentences, pairs: np.ndarray, around: int) -> np.ndarray:
    """(m,) log-odds that a paragraph ends between the two sentences of m pairs.

    around: sentences before the first and after the second that the model reads, too, in their documents.
    """
    scores = np.zeros(len(pairs))
    for place, (left, right) in enumerate(pairs.tolist()):
        first = max(left - around, int(side.starts[side.owner[left]]))
        end = min(right + 1 + around, int(side.starts[side.owner[right] + 1]))
        texts = side.texts[first : left + 1] + side.texts[right:end]
        scores[place] = model.predict(texts)[left - first, 0]
    return scores


def best_threshold(scores: np.ndarray, together: np.ndarray) -> float:
    """The threshold below which a pair is judged to belong together, with the most pairs judged right."""
    order = np.argsort(scores)
    right = np.cumsum(together[order]) - np.cumsum(~together[order])
    return float(scores[order[np.argmax(right)]])


def figure_7(name: str, model: str, args: Namespace) -> dict[str, Any]:
    """Seconds, tokens, speed, share of indexing, and time and money saved."""
    documents, encoder = load_development_set(name, args.data).documents, load_encoder(device="cpu")
    drawn = np.random.default_rng(args.seed).permutation(len(documents))[:N_DOCUMENTS].tolist()
    texts = [documents[row].text for row in drawn]
    segmenter = Segmenter.from_pretrained(model, device="cpu")
    segmenter.segment(texts[0][:3000])
    encoder.encode(["warm up"])
    tokens = int(encoder.count_tokens(texts).sum())
    started = time.process_time()
    chunks = [chunk.text for text in texts for chunk in segmenter.segment(text)]
    cutting = time.process_time() - started
    encoder.encode(chunks)
    encoding = time.process_time() - started - cutting
    time_saved, money_saved = PAPER_SAVED.get(name, ("", ""))
    return {
        "set, model": f"{name}, {model}",
        "tokens": tokens,
        "seconds": cutting,
        "tokens/s": round(tokens / cutting),
        "share of indexing, %": round(100 * cutting / (cutting + encoding)),
        "time saved, %": 100 * (1 - cutting / (tokens * GPT_4_SECONDS)),
        "paper: time": time_saved,
        "money saved, %": f"{100 * (1 - cutting * SERVER_DOLLARS / (tokens * GPT_4_DOLLARS)):.3f}",
        "paper: money": money_saved,
    }


def main() -> None:
    parser = sets_parser(__spec__.name, __doc__, ",".join(PAPER_SAVED), sample=None)
    parser.add_argument("files", nargs="*", type=Path, help="labelled documents for Table X")
    parser.add_argument("--test", nargs="*", type=Path, default=[], help="files tested on as a whole, each")
    parser.add_argument("--sentences", type=int, default=12_000, help="of the training documents at most")
    args = parser.parse_args()
    rows = [figure_7(name, model, args) for name in args.sets.split(",") for model in PACKAGED]
    parts = ["## Figure 7: what segmentation costs", table(rows, ".2f")]
    parts.append("The paper's segmentation reads 725 tokens a second (Table VIII).")
    if args.files:
        parts += ["## Table X: accuracy on pairs (%)", table(table_x(args, cached_encoder(args)))]
    save("segmentation", __spec__.name, args, "SAGE: segmentation", about(__doc__), *parts)


if __name__ == "__main__":
    main()
