"""How well human boundaries are found on documents never trained on, by domain, against other methods.

    python -m benchmarks.segmentation.boundaries --data DIR [--limit 1500] [--by small,random] [--sets choi]

Of the training files only the documents that `precise train` holds out (by id) are used, in seeded
order up to --limit sentences of each set. Labels: paragraph breaks, and section breaks. Every method
reads the sentences alone, joined by spaces for those that want a text; their cuts count at the
nearest gap. Methods with scores cut as often as the authors did, over all documents of the set:
accuracy at natural prevalence, balanced accuracy and boundary F1 are at that threshold, and AUC is
over the scores. Those that decide for themselves are taken with their defaults. P_k and WindowDiff
by nltk, mean over documents, k half a mean segment. Methods and sets that are not measured again keep the
rows of the newest result, if it had the same --limit. With --against FOLDER, the last method of --by is
compared with the model in FOLDER: mean differences over the sets, with 95 % intervals over documents.
"""

import json
import zlib
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nltk.metrics.segmentation import pk, windowdiff
from nltk.tokenize.texttiling import TextTilingTokenizer

import benchmarks.peers.splitters  # noqa: F401  adds the splitters of other libraries
from benchmarks import record
from benchmarks.results import newest
from benchmarks.tables import table
from precise_rag.encoders import CachedEncoder, load_encoder
from precise_rag.evaluation.splitters import load_splitter
from precise_rag.segmentation.pretrained import load_model
from precise_rag.segmentation.training.corpus import area_under_curve
from precise_rag.segmentation.training.labelled_documents import (
    UNKNOWN,
    LabelledDocument,
    is_held_out,
    read_labelled,
)
from precise_rag.types import Document

Scorer = Callable[[LabelledDocument], np.ndarray]
"""A document to (n - 1,) or (n - 1, 2) scores, higher where a boundary is likelier."""

TECHNICAL = "cpp d2l eips opentelemetry owasp-cheatsheets owasp-wstg peps powershell rust-book rust-reference"
SETS = {
    "textbooks": ["train_docs_openstax"],
    "technical": [f"train_docs_{name}" for name in [*TECHNICAL.split(), "rust-rfcs"]],
    "encyclopedia": ["train_docs_wikipedia", "train_docs_freshwiki", "train_docs_wikitext2"],
    "fiction": ["train_docs_standardebooks"],
    "speeches": ["train_docs_speeches"],
    "meetings": ["dev_qa_docs_qmsum"],
    "stories": ["dev_qa_docs_fairytaleqa"],
    "multilingual": ["train_docs_multilingual"],
    "choi": ["dev_seg_choi"],
    "wiki300": ["train_seg_wiki300"],
    **{f"xquad/{language}": ["dev_qa_docs_xquad"] for language in ("en", "de", "es", "ru", "ar", "zh")},
}
"""Files by set; of "xquad/de" the documents whose id begins so. Means leave out sets of one language."""
KINDS = ("paragraph", "section")
STOCK = {
    "LlamaIndex SemanticSplitter": ("llamaindex-semantic", {}),
    "LangChain SemanticChunker": ("langchain-semantic", {}),
    "chonkie SemanticChunker": ("chonkie-semantic", {"chunk_size": 2048}),
}
Measured = tuple[list[LabelledDocument], dict[str, list[np.ndarray]]]
"""The documents of a set, and each method's scores of their gaps."""

_DRAWS = 200
_COMPARED = ("AUC", "F1", "P_k")
FIGURES = ("AUC", "accuracy", "balanced", "F1", "P_k", "WindowDiff")


class Method(NamedTuple):
    """A method. score: scores of a document's gaps. decides: whether a score above 0.5 is a cut."""

    score: Scorer
    decides: bool = False


def random_scores(document: LabelledDocument) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(document.id.encode())).random(len(document.sentences) - 1)


def paragraph_scores(document: LabelledDocument) -> np.ndarray:
    """Cuts at every paragraph break that the source marks."""
    return (document.paragraph == 1).astype(float)


def texttiling_scores(document: LabelledDocument) -> np.ndarray:
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


def model_scorer(name: str | Path, encoder: Any) -> Scorer:
    model, _ = load_model(name, encoder=encoder)
    return lambda document: model.predict(document.sentences).logits


def cosine_scorer(encoder: Any) -> Scorer:
    def score(document: LabelledDocument) -> np.ndarray:
        vectors = encoder.encode(document.sentences)
        return -np.einsum("ij,ij->i", vectors[:-1], vectors[1:])

    return score


def stock_scorer(name: str, encoder: Any, options: dict[str, Any]) -> Scorer:
    """1 at the gap nearest to where another library's chunk begins."""
    splitter = load_splitter(name, encoder, **options)

    def score(document: LabelledDocument) -> np.ndarray:
        edges = np.cumsum([len(sentence) + 1 for sentence in document.sentences])[:-1]
        scores = np.zeros(len(edges))
        for unit in splitter(Document(document.id, " ".join(document.sentences)))[1:]:
            scores[np.argmin(np.abs(edges - unit.start))] = 1
        return scores

    return score


def load_methods(cache: Path) -> dict[str, Callable[[], Method]]:
    """Methods by name, each as a function that loads it."""
    encoder = CachedEncoder(load_encoder("all-MiniLM-L6-v2"), cache)
    methods: dict[str, Callable[[], Method]] = {
        "random": lambda: Method(random_scores),
        "every paragraph": lambda: Method(paragraph_scores, decides=True),
        "TextTiling (nltk)": lambda: Method(texttiling_scores, decides=True),
        "cosine of MiniLM vectors": lambda: Method(cosine_scorer(encoder)),
    }
    for title, (name, options) in STOCK.items():
        methods[title] = lambda name=name, options=options: Method(stock_scorer(name, encoder, options), True)
    return methods | {m: lambda m=m: Method(model_scorer(m, encoder)) for m in ("small", "sage-minilm")}


def draw(data: Path, name: str, limit: int) -> list[LabelledDocument]:
    """Documents that no model was trained on, in seeded order."""
    files = [data / f"{file}.jsonl.gz" for file in SETS[name]]
    documents = [
        document
        for document in read_labelled(*files)
        if (not SETS[name][0].startswith("train") or is_held_out(document.id, 0.05))
        and ("/" not in name or document.id.startswith(f"{name}/"))
    ]
    order = [documents[place] for place in np.random.default_rng(0).permutation(len(documents)).tolist()]
    before = accumulate((len(document.sentences) for document in order), initial=0)
    return [document for document, n in zip(order, before, strict=False) if n < limit]


def measure(labels: list[np.ndarray], scores: list[np.ndarray], decides: bool) -> dict[str, float]:
    """The figures of one method on one kind of boundary; {} if the source marks none."""
    flat, truth = np.concatenate(scores), np.concatenate(labels)
    known = truth != UNKNOWN
    flat, truth = flat[known].astype(np.float32), truth[known] == 1
    n_true = int(truth.sum())
    if not n_true or n_true == len(truth):
        return {}
    threshold = 0.5 if decides else float(np.sort(flat)[::-1][n_true - 1])
    found = flat >= threshold
    hits = int((found & truth).sum())
    recall, specificity = hits / n_true, float((~found & ~truth).sum()) / (len(truth) - n_true)
    errors = [
        window_errors(label, row >= threshold)
        for label, row in zip(labels, scores, strict=True)
        if (label == 1).any() and not (label == UNKNOWN).any()
    ]
    pks, differences = zip(*errors, strict=True) if errors else ((np.nan,), (np.nan,))
    return {
        "gaps": len(truth),
        "prevalence": n_true / len(truth),
        "cuts": int(found.sum()) / n_true,
        "AUC": float("nan") if decides else area_under_curve(flat, truth),
        "accuracy": float((found == truth).mean()),
        "balanced": (recall + specificity) / 2,
        "F1": 2 * hits / (int(found.sum()) + n_true),
        "P_k": _mean(list(pks)),
        "WindowDiff": _mean(list(differences)),
    }


def window_errors(label: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    truth = "".join("1" if value == 1 else "0" for value in label) + "0"
    cuts = "".join("1" if value else "0" for value in found) + "0"
    k = max(2, round(len(truth) / (truth.count("1") + 1) / 2))
    if k >= len(truth):
        return float("nan"), float("nan")
    return pk(truth, cuts, k), windowdiff(truth, cuts, k)


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each method's figures, the mean over the sets that all methods of the kind were measured on."""
    by_method: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["by"] != "every paragraph" and "/" not in row["set"]:
            by_method.setdefault((row["kind"], row["by"]), []).append(row)
    return [
        {"set": f"mean of {len(mine)}", "kind": kind, "by": by}
        | {name: _mean([row[name] for row in mine]) for name in ("cuts", *FIGURES)}
        for (kind, by), mine in sorted(by_method.items(), key=lambda item: KINDS.index(item[0][0]))
    ]


def _mean(values: list[float]) -> float:
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


def differences(measured: dict[str, Measured], first: str, second: str) -> list[dict[str, Any]]:
    """Mean figures of the first method minus those of the second, with intervals over documents."""
    rng = np.random.default_rng(0)
    drawn = [
        {name: rng.integers(len(documents), size=len(documents)) for name, (documents, _) in measured.items()}
        for _ in range(_DRAWS)
    ]
    every = {name: np.arange(len(documents)) for name, (documents, _) in measured.items()}
    found = []
    for column, kind in enumerate(KINDS):
        gains = [_gain(measured, column, first, second, places) for places in (every, *drawn)]
        for place, figure in enumerate(_COMPARED):
            low, high = np.nanpercentile([gain[place] for gain in gains[1:]], (2.5, 97.5))
            found.append(
                {"kind": kind, "figure": figure, "difference": gains[0][place], "low": low, "high": high}
            )
    return found


def _gain(
    measured: dict[str, Measured], column: int, first: str, second: str, places: dict[str, np.ndarray]
) -> np.ndarray:
    """(len(_COMPARED),) mean differences over the sets of one language, with their documents at `places`."""
    gains = []
    for name, (documents, scores) in measured.items():
        if "/" in name:
            continue
        rows = places[name].tolist()
        labels = [(documents[row].paragraph, documents[row].section)[column] for row in rows]
        both = [
            measure(labels, [scores[by][row][:, column] for row in rows], False) for by in (first, second)
        ]
        if all(both):
            gains.append([both[0][figure] - both[1][figure] for figure in _COMPARED])
    return np.nanmean(gains, axis=0)


def shown(rows: list[dict[str, Any]], names: tuple[str, ...]) -> str:
    head = {"documents": "set", "boundary": "kind", "by": "by"}
    return table(
        [{k: row[v] for k, v in head.items()} | {name: row[name] for name in names} for row in rows], ".3f"
    )


def render(rows: list[dict[str, Any]], compared: list[dict[str, Any]]) -> str:
    parts = [
        "# Human boundaries found",
        record.about(__doc__).rpartition(" Methods and sets")[0],
        "Each set counts the same; `cuts` is how many a method makes for each of the author's:",
        shown(means(rows), ("cuts", *FIGURES)),
    ]
    if compared:
        parts += ["The last method against the model in FOLDER:", table(compared, "+.3f")]
    parts += ["By set:", shown(rows, ("gaps", "prevalence", "cuts", *FIGURES))]
    return "\n\n".join(parts)


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--by", help="methods, comma-separated (default: all)")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--limit", type=int, default=1_500, help="sentences of each set, about")
    parser.add_argument("--cache", type=Path, default=Path("vectors.sqlite"), help="vectors computed before")
    parser.add_argument(
        "--against", type=Path, metavar="FOLDER", help="a model to compare the last method with"
    )
    args = parser.parse_args()
    makers = load_methods(args.cache)
    methods = {name: makers[name]() for name in (args.by.split(",") if args.by else makers)}
    other = None
    if args.against:
        other = model_scorer(args.against, CachedEncoder(load_encoder("all-MiniLM-L6-v2"), args.cache))
    rows: list[dict[str, Any]] = []
    measured: dict[str, Measured] = {}
    for name in args.sets.split(","):
        documents = draw(Path(args.data), name, args.limit)
        measured[name] = (documents, {})
        if other is not None:
            measured[name][1]["against"] = [other(document) for document in documents]
        for by, method in methods.items():
            scores = [method.score(document) for document in documents]
            measured[name][1][by] = scores
            for column, kind in enumerate(KINDS):
                labels = [(document.paragraph, document.section)[column] for document in documents]
                of_kind = [row if row.ndim == 1 else row[:, column] for row in scores]
                figures = measure(labels, of_kind, method.decides)
                no_paragraphs = not any((document.paragraph == 0).any() for document in documents)
                pointless = by == "every paragraph" and (kind == "paragraph" or no_paragraphs)
                if figures and not pointless:
                    rows.append({"set": name, "kind": kind, "by": by, **figures})
                    print(json.dumps(rows[-1]), flush=True)
    made = record.made(__spec__.name, args)
    before = newest("segmentation", "models-boundaries")
    if f"--limit {args.limit} " in f"{before.made['command']} ":
        new = {(row["set"], row["by"]) for row in rows}
        rows += [row for row in before.data["rows"] if (row["set"], row["by"]) not in new]
    order = list(makers)
    rows.sort(key=lambda row: order.index(row["by"]))
    rows.sort(key=lambda row: (KINDS.index(row["kind"]), list(SETS).index(row["set"])))
    compared = differences(measured, list(methods)[-1], "against") if args.against else []
    data = {"rows": rows, "against": compared}
    record.save("segmentation", "models-boundaries", made, render(rows, compared), data)


if __name__ == "__main__":
    main()
