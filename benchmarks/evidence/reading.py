"""What rounding and reading less do to the evidence that is sent.

    python -m benchmarks.evidence.reading --data DIR [--questions 40] [--vectors FILE] [--cache DIR]

The held-out questions of `measure`. The cascade reads 20 candidates in float32, 20 in int8, and in int8
until four in a row are improbable, as it does by default. Recall (%) of what the default selection sends, and
of all sentences by falling probability within 200 to 1,600 tokens: the mean, and the difference to float32
with its 95 % interval, documents redrawn in pairs. ms: CPU time of the reranker, a question.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import record
from benchmarks.evidence.measure import Read, covered, sent
from benchmarks.evidence.questions import positions_of, recalls
from precise_rag.evaluation import BUDGETS, compare_paired
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.evidence.model import evidence_model
from precise_rag.protocols import Reranker
from precise_rag.rerank import CascadeReranker, rerank
from precise_rag.types import Candidate
from training.evidence.questions import Asked, QuestionSet, held_out_sets

SETS = ("squad", "fairytaleqa", "covidqa", "qmsum", "hotpotqa", "nq")
FLOAT, INT8, DEFAULT = "20 in float32", "20 in int8", "int8, until improbable"


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--vectors", help="file that keeps sentence vectors")
    parser.add_argument("--cache", help="folder that keeps questions", type=Path)
    parser.add_argument("--questions", type=int, default=40, help="of each set at most (%(default)s)")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    options = parser.parse_args()
    rerankers = {
        FLOAT: CascadeReranker(device="cpu", precision="float32", least=0),
        INT8: CascadeReranker(device="cpu", least=0),
        DEFAULT: CascadeReranker(device="cpu"),
    }
    found: dict[str, list[np.ndarray]] = {name: [] for name in rerankers}
    groups: list[str] = []
    for one in held_out_sets(options, options.sets):
        asked = [question for question in one.asked if question.found]
        asked = asked[:: max(1, len(asked) // options.questions)][: options.questions]
        groups += [question.group for question in asked]
        for name, reranker in rerankers.items():
            found[name].append(measure(one, asked, reranker))
        print(one.name, {name: values[-1].mean(axis=0).round(4).tolist() for name, values in found.items()})
    rows = table({name: np.concatenate(values) for name, values in found.items()}, groups)
    header = ["read", "ms", "tokens", "recall", *(f"{b} tokens" for b in BUDGETS)]
    text = ["# Rounding and reading less", f"{len(groups)} questions.", format_markdown(header, rows)]
    made = record.made(__spec__.name, options, reranker=rerankers[DEFAULT].weights_sha256)
    sets = {name: [v.mean(axis=0).tolist() for v in values] for name, values in found.items()}
    record.save("evidence", "reading", made, "\n\n".join(text), {"sets": options.sets, "means": sets})


def measure(one: QuestionSet, asked: Sequence[Asked], reranker: Reranker) -> np.ndarray:
    """(questions, 3 + budgets): ms, tokens and recall of what is sent, and recall within each budget."""
    rows, lists = [], []
    for question in asked:
        given = [replace(c, score=c.scores.get("retrieval", c.score)) for c in question.found]
        started = time.process_time()
        ranked = rerank(question.question, [_as_found(c) for c in given], reranker)
        ms = (time.process_time() - started) * 1e3
        again = question._replace(found=ranked)
        read = Read(again, one.documents)
        pieces = read.ranked(read.probabilities(evidence_model()))
        kept = sent(again, pieces)
        total = sum(e.end - e.start for e in question.evidence)
        rows.append((ms, sum(c.n_tokens or 0 for c in kept), covered(kept, question) / total))
        lists.append(pieces)
    return np.concatenate([np.array(rows), recalls(positions_of(one), list(asked), lists)], axis=1)


def _as_found(candidate: Candidate) -> Candidate:
    scores = {name: score for name, score in candidate.scores.items() if name != "retrieval"}
    return replace(candidate, scores=scores, score_scale="rank")


def table(found: Mapping[str, np.ndarray], groups: Sequence[str]) -> list[list[str]]:
    """Means over all questions, with the differences of the recalls to float32."""
    first = found[FLOAT]
    rows = []
    for name, values in found.items():
        cells = [name, f"{values[:, 0].mean():.0f}", f"{values[:, 1].mean():.0f}"]
        for column in range(2, values.shape[1]):
            cell = f"{100 * values[:, column].mean():.1f}"
            if name != FLOAT:
                gain = compare_paired(values[:, column], first[:, column], groups=groups).difference
                cell += f" ({100 * gain.mean:+.1f}, {100 * gain.low:+.1f} to {100 * gain.high:+.1f})"
            cells.append(cell)
        rows.append(cells)
    return rows


if __name__ == "__main__":
    main()
