"""The comparison of a plan's pipelines as Markdown and as plain values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.tables import percent
from precise_rag.evaluation.measures.evidence import BUDGETS
from precise_rag.evaluation.measures.statistics import Comparison, compare_over_sets, compare_paired
from precise_rag.evaluation.report.tables import SIGNIFICANT, format_markdown
from precise_rag.evaluation.runs.evaluate import Outcome
from precise_rag.evaluation.runs.measurer import Measured, Row

SHARES = tuple(f"recall@{budget}" for budget in BUDGETS)
STEP_BUDGET = 400
"""Tokens at which a part is shown for each set."""

_LEGEND = """\
Recall of evidence characters (%) when 200 / 400 / 800 / 1,600 tokens are sent; the last piece is cut where
the budget is full. {encoder} for all; the whole collection is searched. ± is half of the 95 % bootstrap
interval, documents drawn whole; **bold**: the column's best; + or -: differs from {baseline} (paired test,
p < 0.05; in the means, the sets count the same). Kept recall and kept tokens: all that the pipeline keeps, at
most its top_k. build s: cutting and indexing with vectors from the cache; ms: one question, one thread, the
question's vector from the cache, on a machine that did other work too. {questions}
"""
_UNSEEN = "No question is about a document that the packaged reranker was trained on."
_STEPS = """\
Each line switches one part on and leaves the rest. Points of recall gained with {budgets}
tokens sent, mean of the sets (± half of the 95 % interval), then set by set with {budget:,} tokens sent;
**bold**: p < 0.05 in a paired test, documents flipped whole. What it costs: tokens of all that is kept, and
milliseconds a question.
"""

Steps = Mapping[str, Sequence[str]]
"""Name of a part to the pipeline with it and the pipeline without it."""


def render_markdown(title: str, encoder: str, outcomes: Sequence[Outcome], extra: Mapping[str, Any]) -> str:
    """Means over the sets, what each part buys, then one table a set.

    extra: the table `benchmark` of the plan's file.
    """
    questions = "" if extra.get("all_questions") else _UNSEEN
    legend = _LEGEND.format(encoder=encoder, baseline=outcomes[0].baseline, questions=questions)
    parts = [f"# {title.capitalize()}", legend]
    if best := extra.get("best"):
        parts += [_best_table(outcomes, **best), "\nBold: the interval excludes 0.\n"]
    for chosen in means_over(outcomes):
        sets = ", ".join(outcome.dataset.name for outcome in chosen)
        parts += [f"\n## Mean over {sets}\n", _table(chosen, *_MEAN_COLUMNS)]
    if steps := extra.get("steps", {}):
        legend = _STEPS.format(budgets=" / ".join(f"{b:,}" for b in BUDGETS), budget=STEP_BUDGET)
        parts += ["\n## What each part buys and costs\n", legend, _step_table(outcomes, steps)]
    for outcome in outcomes:
        n_questions = len(outcome.measurer.dataset.questions)
        size = f"{len(outcome.dataset.documents):,} documents, {n_questions} questions"
        parts += [f"\n## {outcome.dataset.name}: {size}\n", _table([outcome], *_SET_COLUMNS)]
    failed = {name: why for outcome in outcomes for name, why in outcome.failed.items()}
    parts += [f"\n{name} did not run: {why}\n" for name, why in failed.items()]
    return "\n".join(parts).rstrip() + "\n"


def means_over(outcomes: Sequence[Outcome]) -> list[Sequence[Outcome]]:
    """All sets; and, if some pipelines ran on some sets only, those on which most ran."""
    most = max(len(outcome.rows) for outcome in outcomes)
    fullest = [outcome for outcome in outcomes if len(outcome.rows) == most]
    return [outcomes] if len(fullest) == len(outcomes) else [outcomes, fullest]


def common_names(outcomes: Sequence[Outcome]) -> list[str]:
    """Pipelines that ran on each of the sets."""
    ran = [{row.name for row in outcome.rows} for outcome in outcomes]
    return [row.name for row in outcomes[0].rows if all(row.name in names for names in ran)]


def mean_over_sets(outcomes: Sequence[Outcome], name: str, measure: str) -> float:
    """Mean of a measure over the sets; each set counts the same."""
    return float(np.mean([_value(row_of(outcome, name), measure) for outcome in outcomes]))


def compare_means(outcomes: Sequence[Outcome], name: str, other: str, measure: str) -> Comparison:
    """One pipeline against another over the sets."""
    return compare_over_sets(
        [
            (_measured(o, name).values[measure], _measured(o, other).values[measure], _groups(o))
            for o in outcomes
        ]
    )


def row_of(outcome: Outcome, name: str) -> Row:
    """The row of a pipeline."""
    return next(row for row in outcome.rows if row.name == name)


_MEAN_COLUMNS = (
    ("nDCG@10", "nDCG@10", 1, ".3f"),
    ("kept recall", "recall", 100, ".1f"),
    ("kept tokens", "tokens", 1, ",.0f"),
    ("ms a question", "ms", 1, ".1f"),
)
_SET_COLUMNS = (
    _MEAN_COLUMNS[0],
    ("useful@450", "useful@450", 100, ".1f"),
    *_MEAN_COLUMNS[1:3],
    ("ms", "ms", 1, ".1f"),
    ("build s", "build_seconds", 1, ".1f"),
)
"""Columns of the tables: header, measure, factor and format."""


def _table(outcomes: Sequence[Outcome], *columns: tuple[str, str, int, str]) -> str:
    """Recall at the budgets and other measures: means over several sets, or one set with its intervals."""
    names, baseline = common_names(outcomes), outcomes[0].baseline
    best = {s: max(mean_over_sets(outcomes, name, s) for name in names) for s in SHARES}
    if any(mean_over_sets(outcomes, name, "llm tokens") for name in names):
        columns = (*columns, ("tokens asked", "llm tokens", 1, ",.0f"))
    body = []
    for name in names:
        cells = [name]
        for share in SHARES:
            mean = mean_over_sets(outcomes, name, share)
            number = f"**{100 * mean:.1f}**" if mean == best[share] else f"{100 * mean:.1f}"
            if len(outcomes) > 1:
                comparison = compare_means(outcomes, name, baseline, share)
            else:
                row = row_of(outcomes[0], name)
                number += f" ± {50 * (row.means[share].high - row.means[share].low):.1f}"
                comparison = row.against_baseline.get(share)
            cells.append(number + _sign(comparison))
        cells += [
            format(n * mean_over_sets(outcomes, name, measure), form) for _, measure, n, form in columns
        ]
        body.append(cells)
    return format_markdown(["pipeline", *map(str, BUDGETS), *(column[0] for column in columns)], body)


def _step_table(outcomes: Sequence[Outcome], steps: Steps) -> str:
    body = []
    for part, (name, other) in _known(outcomes, steps):
        cells = [part]
        for share in SHARES:
            found = compare_means(outcomes, name, other, share)
            mean, low, high = found.difference
            cells.append(f"{_bold(f'{100 * mean:+.1f}', found)} ± {50 * (high - low):.1f}")
        for outcome in outcomes:
            found = _compared(outcome, name, other, f"recall@{STEP_BUDGET}")
            cells.append(_bold(f"{100 * found.difference.mean:+.1f}", found))
        for measure, form in (("tokens", "+,.0f"), ("ms", "+.1f")):
            cost = mean_over_sets(outcomes, name, measure) - mean_over_sets(outcomes, other, measure)
            cells.append(format(cost, form))
        body.append(cells)
    sets = [f"{outcome.dataset.name}@{STEP_BUDGET}" for outcome in outcomes]
    return format_markdown(["part", *map(str, BUDGETS), *sets, "tokens", "ms"], body)


def _best_table(outcomes: Sequence[Outcome], name: str, of: str) -> str:
    """A pipeline on each set, less the one that is best there of those whose names begin with `of`."""
    body = []
    for outcome in outcomes:
        peers = [row.name for row in outcome.rows if row.name.startswith(of)]
        means, gains = [], []
        for share in SHARES:
            best = max(peers, key=lambda peer, s=share, o=outcome: row_of(o, peer).means[s].mean)
            gain = percent(_compared(outcome, name, best, share).difference)
            means.append(f"{100 * row_of(outcome, name).means[share].mean:.1f}")
            gains.append(f"**{gain.mean:+.1f}**" if gain.low * gain.high > 0 else f"{gain.mean:+.1f}")
        n_questions = len(outcome.measurer.dataset.questions)
        body.append([f"{outcome.dataset.name} ({n_questions})", " / ".join(means), " / ".join(gains)])
    return format_markdown(["set (questions)", f"`{name}`", f"minus the best {of} search"], body)


def _compared(outcome: Outcome, name: str, other: str, measure: str) -> Comparison:
    values = [_measured(outcome, one).values[measure] for one in (name, other)]
    return compare_paired(*values, groups=_groups(outcome))


def _known(outcomes: Sequence[Outcome], steps: Steps) -> Iterator[tuple[str, Sequence[str]]]:
    """The steps whose pipelines ran on all sets."""
    names = common_names(outcomes)
    return ((part, pair) for part, pair in steps.items() if all(name in names for name in pair))


def _value(row: Row, measure: str) -> float:
    return row.means[measure].mean if measure in row.means else row.facts[measure]


def _sign(comparison: Comparison | None) -> str:
    if comparison is None or comparison.p_value >= SIGNIFICANT:
        return ""
    return " +" if comparison.difference.mean > 0 else " -"


def _bold(text: str, comparison: Comparison) -> str:
    return f"**{text}**" if comparison.p_value < SIGNIFICANT else text


def _measured(outcome: Outcome, name: str) -> Measured:
    return next(one for one in outcome.measured if one.name == name)


def _groups(outcome: Outcome) -> list[str]:
    return [question.group for question in outcome.measurer.dataset.questions]
