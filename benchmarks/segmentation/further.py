"""Is a model that goes on training on a few documents of your own ever worse than the packaged one?

    python -m benchmarks.segmentation.further --data DIR

Each collection is a folder of 20 to 100 documents of one source, for which `precise train FOLDER --out M`
is run as it comes. Up to 40 other documents of the source, in no folder, test both models: the loss of a
gap (of paragraph and section breaks together, in nats), and the areas under the curve. Differences are the
new model's minus those of `small`, with 95 % intervals over the test documents. `small` was trained on most
of the test documents of the files `train_docs_*`, so that it has an advantage there; of `train_qa_docs_*` it
has seen none.
"""

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.tables import table
from precise_rag.cli import main as precise
from precise_rag.segmentation.pretrained import load_model
from precise_rag.segmentation.training.corpus import area_under_curve
from precise_rag.segmentation.training.fitting import best_epoch
from precise_rag.segmentation.training.labelled_documents import UNKNOWN, LabelledDocument, read_labelled

COLLECTIONS = {
    "docs_standardebooks": 20,
    "docs_d2l": 30,
    "docs_owasp-cheatsheets": 40,
    "docs_speeches": 50,
    "docs_rust-book": 40,
    "docs_wikipedia": 60,
    "docs_opentelemetry": 70,
    "docs_peps": 80,
    "docs_openstax": 100,
    "qa_docs_faq": 60,
}
"""Documents of each folder, by the file that they are from."""
TESTED, LONGEST, DRAWS = 40, 300_000, 500
KINDS = ("paragraph", "section")


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--collections", default=",".join(COLLECTIONS), help="default: all ten")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rows = record.printed(
        measure(Path(args.data) / f"train_{name}.jsonl.gz", COLLECTIONS[name], args.seed)
        for name in args.collections.split(",")
    )
    record.save("segmentation", "further", record.made(__spec__.name, args), render(rows), {"rows": rows})


def measure(file: Path, size: int, seed: int) -> dict[str, Any]:
    """Train on `size` documents of a file, and compare with `small` on others."""
    rng = np.random.default_rng(seed)
    records = [line for line in read_lines(file) if len(line) <= LONGEST]
    chosen = [records[place] for place in rng.permutation(len(records))[: size + TESTED]]
    with tempfile.TemporaryDirectory() as work:
        folder, test, out = (Path(work) / name for name in ("documents", "test.jsonl", "model"))
        folder.mkdir()
        (folder / "documents.jsonl").write_text("\n".join(chosen[:size]), encoding="utf-8")
        test.write_text("\n".join(chosen[size:]), encoding="utf-8")
        precise(["train", str(folder), "--out", str(out), "--seed", str(seed)])
        history = json.loads((out / "checkpoint" / "history.json").read_text())["history"]
        documents = list(read_labelled(test))
        models = {name: load_model(place)[0] for name, place in (("small", "small"), ("new", out))}
        logits = {name: [m.predict(d.sentences).logits for d in documents] for name, m in models.items()}
    row = {"file": file.name.split(".")[0], "trained on": size, "tested on": len(documents)}
    row["epoch"] = best_epoch(history)["epoch"]
    return {**row, **compare(documents, logits["small"], logits["new"], rng)}


def read_lines(file: Path) -> list[str]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [line.strip() for line in lines]


def compare(
    documents: list[LabelledDocument], before: list[Any], after: list[Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Each figure of both models, and its difference with the interval over documents."""
    labels = [np.stack([document.paragraph, document.section], axis=1) for document in documents]
    drawn = [rng.integers(len(documents), size=len(documents)) for _ in range(DRAWS)]
    found: dict[str, Any] = {}
    for name, figure in figures().items():

        def both(rows: Any, figure: Any = figure) -> list[float]:
            return [figure([labels[i] for i in rows], [of[i] for i in rows]) for of in (before, after)]

        first, second = both(range(len(documents)))
        gains = [np.subtract(*both(rows)[::-1]) for rows in drawn]
        low, high = np.nanpercentile(gains, (2.5, 97.5)) if np.isfinite(gains).any() else (np.nan, np.nan)
        found[name] = [round(float(value), 4) for value in (first, second, second - first, low, high)]
    return found


def figures() -> dict[str, Any]:
    """The figures of labels and logits, lists of (n - 1, 2), by name."""

    def loss(labels: list[Any], logits: list[Any]) -> float:
        truth, scores = np.concatenate(labels), np.concatenate(logits).astype(np.float64)
        known = truth != UNKNOWN
        return float(np.logaddexp(0, np.where(truth == 1, -scores, scores))[known].mean())

    def area(column: int) -> Any:
        def measured(labels: list[Any], logits: list[Any]) -> float:
            truth, scores = (np.concatenate(of)[:, column] for of in (labels, logits))
            known = truth != UNKNOWN
            return area_under_curve(scores[known], truth[known] == 1)

        return measured

    return {"loss": loss, **{f"{kind} AUC": area(column) for column, kind in enumerate(KINDS)}}


def is_worse(row: dict[str, Any]) -> list[str]:
    """The figures whose whole interval is on the bad side."""
    return [name for name in figures() if (row[name][3] > 0 if name == "loss" else row[name][4] < 0)]


def render(rows: list[dict[str, Any]]) -> str:
    body = []
    for row in rows:
        line = {"source": row["file"], "trained on": row["trained on"], "tested on": row["tested on"]}
        line["best epoch"] = row["epoch"]
        for name in figures():
            _, after, *gain = row[name]
            line[name] = (
                "–" if after != after else f"{after:.3f} ({{:+.3f}}, {{:+.3f}} to {{:+.3f}})".format(*gain)
            )
        body.append({**line, "significantly worse": ", ".join(is_worse(row)) or "no"})
    summary = (
        f"Of {len(rows)} collections {sum(bool(is_worse(row)) for row in rows)} are significantly worse in a "
        "figure. In brackets: the difference from `small`, and its interval. Epoch 0 is `small` itself."
    )
    title = "# Going on training on your own documents"
    return "\n\n".join([title, record.about(__doc__), summary, table(body)])


if __name__ == "__main__":
    main()
