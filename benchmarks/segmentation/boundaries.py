"""How well are human boundaries found? Held-out documents, by domain, against simple baselines.

    python benchmarks/segmentation/boundaries.py FILE… [--models small,sage-minilm] [--all-documents]

Labels: paragraph breaks, and section breaks (Choi, wiki300 and the like have only those). Of each
file only the documents that `precise train` holds out (by id) are used, unless --all-documents.
AUC over gaps; accuracy at natural prevalence, balanced accuracy and boundary F1 at the threshold
that gives the true number of boundaries over all; P_k and WindowDiff (nltk) for the same cuts,
mean over documents, k half a mean segment.
"""

import argparse
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from nltk.metrics.segmentation import pk, windowdiff
from nltk.tokenize.texttiling import TextTilingTokenizer

from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.segmentation.corpus import area_under_curve
from precise_rag.segmentation.data import UNKNOWN, LabelledDocument, is_held_out, read_labelled
from precise_rag.segmentation.pretrained import load_model

Scorer = Callable[[LabelledDocument, int], np.ndarray]
"""(document, label column) to (n - 1,) scores, higher where a boundary is likelier."""

COLUMNS = ("paragraph", "section")


def model_scorer(name: str, encoder: Any) -> Scorer:
    model, _ = load_model(name, encoder=encoder)
    return lambda document, column: model.read(document.sentences).logits[:, column]


def cosine_scorer(encoder: Any) -> Scorer:
    def score(document: LabelledDocument, column: int) -> np.ndarray:
        vectors = encoder.encode(document.sentences)
        return -np.einsum("ij,ij->i", vectors[:-1], vectors[1:])

    return score


def random_scorer(document: LabelledDocument, column: int) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(document.id.encode())).random(len(document.sentences) - 1)


def texttiling_scorer(document: LabelledDocument, column: int) -> np.ndarray:
    """1 where TextTiling, given the sentences as paragraphs, begins a tile."""
    scores = np.zeros(len(document.sentences) - 1)
    try:
        tiles = TextTilingTokenizer(stopwords=[]).tokenize("\n\n" + "\n\n".join(document.sentences))
    except (ValueError, IndexError):  # too short for its windows
        return scores
    seen = 0
    for tile in tiles[:-1]:
        seen += sum(1 for piece in tile.split("\n\n") if piece.strip())
        if 0 < seen <= len(scores):
            scores[seen - 1] = 1
    return scores


def measure(documents: list[LabelledDocument], scorer: Scorer, column: int) -> dict[str, float]:
    labels = [(document.paragraph, document.section)[column] for document in documents]
    scored = [scorer(document, column) for document in documents]
    flat, truth = np.concatenate(scored), np.concatenate(labels)
    known = truth != UNKNOWN
    flat, truth = flat[known].astype(np.float32), truth[known] == 1
    n_true = int(truth.sum())
    if not n_true or n_true == len(truth):
        return {}
    threshold = np.sort(flat)[::-1][n_true - 1]
    found = flat >= threshold if threshold > flat.min() else flat > threshold
    hits = int((found & truth).sum())
    recall, specificity = hits / n_true, float((~found & ~truth).sum()) / (len(truth) - n_true)
    errors = [
        window_errors(label, scores, threshold)
        for label, scores in zip(labels, scored, strict=True)
        if (label == 1).any() and not (label == UNKNOWN).any()
    ]
    pks, differences = zip(*errors, strict=True) if errors else ((np.nan,), (np.nan,))
    return {
        "gaps": len(truth),
        "prevalence": n_true / len(truth),
        "AUC": area_under_curve(flat, truth),
        "accuracy": float((found == truth).mean()),
        "balanced": (recall + specificity) / 2,
        "F1": 2 * hits / (int(found.sum()) + n_true),
        "P_k": float(np.mean(pks)),
        "WindowDiff": float(np.mean(differences)),
    }


def window_errors(label: np.ndarray, scores: np.ndarray, threshold: float) -> tuple[float, float]:
    truth = "".join("1" if value == 1 else "0" for value in label) + "0"
    found = "".join("1" if value >= threshold else "0" for value in scores) + "0"
    k = max(2, round(len(truth) / (truth.count("1") + 1) / 2))
    if k >= len(truth):
        return float("nan"), float("nan")
    return pk(truth, found, k), windowdiff(truth, found, k)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--models", default="small")
    parser.add_argument(
        "--texttiling", action="store_true", help="also nltk's TextTiling, which takes minutes"
    )
    parser.add_argument("--cosine", action="store_true", help="also the cosine of MiniLM sentence vectors")
    parser.add_argument("--cache", type=Path, default=Path("vectors.sqlite"), help="vectors computed before")
    parser.add_argument("--all-documents", action="store_true", help="for files that no model was trained on")
    parser.add_argument("--columns", default=",".join(COLUMNS))
    parser.add_argument("--limit", type=int, default=10**9, help="sentences of each file at most")
    parser.add_argument("--out", type=Path, help="a .jsonl file that results are added to")
    args = parser.parse_args()
    encoder = CachedEncoder(load_encoder(), args.cache) if args.cosine or "sage" in args.models else None
    scorers: dict[str, Scorer] = {"random": random_scorer}
    if args.texttiling:
        scorers["TextTiling (nltk)"] = texttiling_scorer
    if args.cosine:
        scorers["cosine of MiniLM vectors"] = cosine_scorer(encoder)
    scorers |= {name: model_scorer(name, encoder) for name in args.models.split(",")}
    names = ("gaps", "prevalence", "AUC", "accuracy", "balanced", "F1", "P_k", "WindowDiff")
    print(f"| documents | boundary | by | {' | '.join(names)} |\n|---|---|---|{'---:|' * len(names)}")
    for file in args.files:
        documents, total = [], 0
        for document in read_labelled(file):
            if total < args.limit and (args.all_documents or is_held_out(document.id, 0.05)):
                documents.append(document)
                total += len(document.sentences)
        for column, kind in enumerate(COLUMNS):
            if kind not in args.columns.split(","):
                continue
            for name, scorer in scorers.items():
                figures = measure(documents, scorer, column)
                if not figures:
                    continue
                cells = [f"{figures['gaps']:,}", *(f"{figures[key]:.3f}" for key in names[1:])]
                print(f"| {file.name.split('.')[0]} | {kind} | {name} | {' | '.join(cells)} |", flush=True)
                if args.out:
                    with args.out.open("a") as out:
                        out.write(json.dumps({"file": file.name, "kind": kind, "by": name, **figures}) + "\n")


if __name__ == "__main__":
    main()
