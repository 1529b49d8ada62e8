"""Pipelines over the questions of sets, and every measure of what they send.

A pipeline is a function that builds it: from documents and an encoder to a function from a question to the
spans that are sent, best first.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import ir_measures
import numpy as np
from tqdm import tqdm

from benchmarks.harness.datasets import Dataset, Evidence
from benchmarks.harness.evidence import (
    BUDGETS,
    Positions,
    RankedPassages,
    Values,
    evidence_recall,
    useful_ratio,
)
from benchmarks.harness.statistics import (
    SIGNIFICANT,
    Comparison,
    Interval,
    compare_over_sets,
    mean_interval,
)
from benchmarks.harness.tables import table
from precise_rag.index import HybridIndex
from precise_rag.pipeline import PreciseRAG
from precise_rag.protocols import Encoder
from precise_rag.sentences import split_sentences
from precise_rag.types import Candidate, Document

Retrieve = Callable[[str], Sequence[Any]]
Pipeline = Callable[[Sequence[Document], Encoder], Retrieve]

SHARES = tuple(f"recall@{budget}" for budget in BUDGETS)
LEGEND = """\
Recall of evidence characters (%) when 200 / 400 / 800 / 1,600 tokens are sent; the last piece is cut where
the budget is full. The whole collection is searched. ± is half of the 95 % bootstrap interval, documents
drawn whole; **bold**: the column's best; + or -: differs from the first pipeline (paired test, p < 0.05; in
the means, the sets count the same). Kept recall and kept tokens: all that the pipeline keeps, at most its
top_k. build s: cutting and indexing with vectors from the cache. ms: one thread, the question's vector from
the cache. No question is about a document that the packaged models were trained on."""


class Measured(NamedTuple):
    """The measures of some pipelines on one set: the value of each question, by pipeline and measure.

    recall@b: evidence at each budget b. recall: evidence in all that is sent. useful@450: share of useful
    sentences. nDCG@10: of paragraphs. tokens: sent. ms: of one question. build s: once.
    """

    dataset: Dataset
    values: Mapping[str, Mapping[str, Values]]

    @property
    def groups(self) -> list[str]:
        """The group of each question in statistics."""
        return [question.group for question in self.dataset.questions]


def preset(name: str = "precise", index: Mapping[str, Any] | None = None, **options: Any) -> Pipeline:
    """A preset of `PreciseRAG`. index: options of its index. options: of `PreciseRAG`."""

    def build(documents: Sequence[Document], encoder: Encoder) -> Retrieve:
        rag = PreciseRAG.from_documents(
            documents, encoder=encoder, preset=name, index_options=index, feedback=None, **options
        )
        return lambda question: rag.retrieve(question).kept

    return build


def search(
    kind: Any = HybridIndex, top_k: int = 100, reranker: str | None = None, **options: Any
) -> Pipeline:
    """The search of an index, and a reranker behind it. options: of the index; `returns` of its search."""
    given = {"returns": options.pop("returns")} if "returns" in options else {}

    def build(documents: Sequence[Document], encoder: Encoder) -> Retrieve:
        source = Searched(kind.build(documents, encoder, **options), encoder, given)
        source.search("What is prepared at the first search?", 1)
        stages = {"redundancy": None, "evidence": None, "selector": None, "reranker": reranker}
        rag = PreciseRAG(source, **stages, n_candidates=top_k)
        return lambda question: rag.retrieve(question).kept

    return build


class Searched(NamedTuple):
    """An index that is searched with options."""

    index: Any
    encoder: Encoder
    options: Mapping[str, Any]

    def search(self, query: str, top_k: int) -> list[Candidate]:
        """Return the best candidates."""
        found: list[Candidate] = self.index.search(query, top_k, **self.options)
        return found


def measure(
    pipelines: Mapping[str, Pipeline],
    dataset: Dataset,
    encoder: Encoder,
    budgets: Sequence[int] = BUDGETS,
) -> Measured:
    """Run pipelines over the questions of a set. Without evidence only tokens and times are measured."""
    positions, questions = Positions(dataset.documents), dataset.questions
    passages = RankedPassages(positions)
    sentences = [Evidence(d.id, *span) for d in dataset.documents for span in split_sentences(d.text)]
    places = positions.locate(sentences)
    encoder.encode_queries([question.text for question in questions])
    values: dict[str, dict[str, Values]] = {}
    for name, build in pipelines.items():
        started = time.perf_counter()
        try:
            retrieve = build(dataset.documents, encoder)
        except ImportError as error:
            print(f"{name} is left out: {error}")
            continue
        built = time.perf_counter() - started
        retrieve(questions[0].text)  # loads models, so that no question is timed with it
        sent, ms = [], []
        for question in tqdm(questions, desc=f"{dataset.name}, {name}", leave=False):
            started = time.perf_counter()
            sent.append(retrieve(question.text))
            ms.append(1000 * (time.perf_counter() - started))
        tokens = [positions.count_tokens(pieces) for pieces in sent]
        rows: dict[str, Any] = {"tokens": tokens, "ms": ms, "build s": [built] * len(questions)}
        if questions[0].evidence:
            both = list(zip(sent, (question.evidence for question in questions), strict=True))
            recall = [evidence_recall(positions, *pair, (*budgets, math.inf)) for pair in both]
            names = (*(f"recall@{budget}" for budget in budgets), "recall")
            rows |= zip(names, np.transpose(recall), strict=True)
            rows["useful@450"] = [useful_ratio(positions, *pair, places) for pair in both]
            rows["nDCG@10"] = ranking(passages, both, ir_measures.nDCG @ 10)
        values[name] = {key: np.array(row, dtype=np.float64) for key, row in rows.items()}
    return Measured(dataset, values)


def ranking(passages: RankedPassages, pairs: Sequence[tuple[Any, Any]], measure: Any) -> list[float]:
    """A measure of ir_measures over paragraphs, for each pair of what was found and the evidence."""
    qrels, run = [], []
    for row, (found, evidence) in enumerate(pairs):
        qrels += [ir_measures.Qrel(str(row), item, 1) for item in passages.ids(evidence)]
        run += [ir_measures.ScoredDoc(str(row), item, -rank) for rank, item in enumerate(passages.ids(found))]
    values = [0.0] * len(pairs)
    for one in ir_measures.iter_calc([measure], qrels, run) if run else ():
        values[int(one.query_id)] = one.value
    return values


def mean(sets: Sequence[Measured], name: str, measure: str) -> float:
    """Mean of a measure over the sets; each set counts the same."""
    return float(np.mean([one.values[name][measure].mean() for one in sets]))


def compared(sets: Sequence[Measured], name: str, other: str, measure: str) -> Comparison:
    """One pipeline against another over the sets."""
    return compare_over_sets(
        [(one.values[name][measure] - one.values[other][measure], one.groups) for one in sets]
    )


def recall_table(sets: Sequence[Measured]) -> str:
    """Recall at the budgets and other measures: means over several sets, or one set with its intervals."""
    names = [name for name in sets[0].values if all(name in one.values for one in sets)]
    best = {share: max(mean(sets, name, share) for name in names) for share in SHARES}
    rows = []
    for name in names:
        row: dict[str, Any] = {"pipeline": name}
        for budget, share in zip(BUDGETS, SHARES, strict=True):
            value = mean(sets, name, share)
            text = f"**{100 * value:.1f}**" if value == best[share] else f"{100 * value:.1f}"
            if len(sets) == 1:
                text += f" ± {half(mean_interval(sets[0].values[name][share], sets[0].groups)):.1f}"
            row[str(budget)] = text + _sign(compared(sets, name, names[0], share))
        row["nDCG@10"] = f"{mean(sets, name, 'nDCG@10'):.3f}"
        row["kept recall"] = 100 * mean(sets, name, "recall")
        row["kept tokens"] = f"{mean(sets, name, 'tokens'):,.0f}"
        row |= {"ms a question": mean(sets, name, "ms"), "build s": mean(sets, name, "build s")}
        rows.append(row)
    return table(rows)


def sections(sets: Sequence[Measured]) -> list[str]:
    """A table of the means over all sets, over those on which most pipelines ran, and one a set."""
    most = max(len(one.values) for one in sets)
    fullest = [one for one in sets if len(one.values) == most]
    parts = []
    for chosen in [sets] if len(fullest) == len(sets) else [sets, fullest]:
        names = ", ".join(one.dataset.name for one in chosen)
        parts += [f"## Mean over {names}", recall_table(chosen)] if len(chosen) > 1 else []
    for one in sets:
        size = f"{len(one.dataset.documents):,} documents, {len(one.dataset.questions)} questions"
        parts += [f"## {one.dataset.name}: {size}", recall_table([one])]
    return parts


def half(interval: Interval) -> float:
    """Half of the width of an interval, in percent."""
    return 50 * (interval.high - interval.low)


def _sign(comparison: Comparison) -> str:
    if comparison.p_value >= SIGNIFICANT:
        return ""
    return " +" if comparison.difference.mean > 0 else " -"
