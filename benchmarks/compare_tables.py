"""The comparison of a plan's pipelines as Markdown, as a line chart and as plain values."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from precise_rag.encoders import DEFAULT_ENCODER
from precise_rag.evaluation.measures.evidence import BUDGETS
from precise_rag.evaluation.measures.statistics import Comparison, compare_over_sets, compare_paired
from precise_rag.evaluation.report.tables import SIGNIFICANT, format_markdown
from precise_rag.evaluation.runs.evaluate import Outcome
from precise_rag.evaluation.runs.measurer import Measured, Row
from precise_rag.viz.charts import line_chart

KEPT_MEASURES = ("useful@450", "MRR@10", "nDCG@10", "recall", "tokens", "ms", "llm calls", "llm tokens")
SHARES = tuple(f"recall@{budget}" for budget in BUDGETS)
STEP_BUDGET = 400
"""Tokens at which a part is shown for each set."""

_LEGEND = """\
Recall of evidence characters (%) when 200 / 400 / 800 / 1,600 tokens are sent; the last piece is cut where
the budget is full. {encoder} for all; the whole collection is searched. ± is half of the 95 % bootstrap
interval, documents drawn whole; **bold**: the column's best; + or -: differs from {baseline} (paired test,
p < 0.05; in the means, the sets count the same). Kept recall and kept tokens: all that the pipeline keeps, at
most its top_k. build s: cutting and indexing with vectors from the cache; ms: one question, one thread, the
question's vector from the cache, on a machine that did other work too. No question is about a document that
the packaged reranker was trained on.
"""
_STEPS = """\
Each line switches one part on and leaves the rest. Points of recall gained with {budgets}
tokens sent, mean of the sets (± half of the 95 % interval), then set by set with {budget:,} tokens sent;
**bold**: p < 0.05 in a paired test, documents flipped whole. What it costs: tokens of all that is kept, and
milliseconds a question.
"""

Steps = Mapping[str, Sequence[str]]
"""Name of a part to the pipeline with it and the pipeline without it."""


def render_markdown(plan: str, outcomes: Sequence[Outcome], steps: Steps) -> str:
    """Means over the sets, what each part buys, then one table a set."""
    parts = [
        f"# {plan.capitalize()}",
        _LEGEND.format(encoder=DEFAULT_ENCODER, baseline=outcomes[0].baseline),
    ]
    for chosen in means_over(outcomes):
        sets = ", ".join(outcome.dataset.name for outcome in chosen)
        parts += [f"\n## Mean over {sets}\n", _mean_table(chosen)]
    if steps:
        legend = _STEPS.format(budgets=" / ".join(f"{b:,}" for b in BUDGETS), budget=STEP_BUDGET)
        parts += ["\n## What each part buys and costs\n", legend, _step_table(outcomes, steps)]
    for outcome in outcomes:
        n_questions = len(outcome.measurer.dataset.questions)
        size = f"{len(outcome.dataset.documents):,} documents, {n_questions} questions"
        parts += [f"\n## {outcome.dataset.name}: {size}\n", _set_table(outcome)]
    failed = {name: why for outcome in outcomes for name, why in outcome.failed.items()}
    parts += [f"\n{name} did not run: {why}\n" for name, why in failed.items()]
    return "\n".join(parts).rstrip() + "\n"


def render_svg(outcomes: Sequence[Outcome], labels: Mapping[str, str], points: Mapping, title: str) -> str:
    """Recall against tokens, mean over the sets; other libraries in grey.

    labels: what each line is called; all pipelines under their own names if empty. points: the same for
    pipelines that are shown as one point, at what they keep as they come.
    """
    names = common_names(outcomes)
    lines = {name: labels.get(name, name) for name in names if not labels or name in labels}
    series = {
        label: [(float(b), 100 * mean_over_sets(outcomes, name, f"recall@{b}")) for b in BUDGETS]
        for name, label in lines.items()
    }
    marks = {
        label: (mean_over_sets(outcomes, name, "tokens"), 100 * mean_over_sets(outcomes, name, "recall"))
        for name, label in points.items()
        if name in names
    }
    stock = {run.settings.name for run in outcomes[0].runs if run.settings.is_stock}
    chart = line_chart(
        series,
        x_label="tokens sent to the language model",
        y_label=title or "evidence that arrives",
        muted=[label for name, label in lines.items() if name in stock],
        points=marks,
        height=420,
    )
    style = "text{font:12px sans-serif;fill:#444}.grid{stroke:#e3e5ea}.title{font-weight:bold;font-size:14px}"
    opening, rest = chart.split(">", 1)
    background = '<rect width="100%" height="100%" fill="#fff"/>'
    return f'{opening} xmlns="http://www.w3.org/2000/svg"><style>{style}</style>{background}{rest}\n'


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
    return float(np.mean([row_of(outcome, name).means[measure].mean for outcome in outcomes]))


def compare_means(outcomes: Sequence[Outcome], name: str, other: str, measure: str) -> Comparison:
    """One pipeline against another over the sets."""
    return compare_over_sets(
        [
            (_measured(o, name).values[measure], _measured(o, other).values[measure], _groups(o))
            for o in outcomes
        ]
    )


def compact(outcome: Outcome) -> dict:
    """The results without what nobody compares later."""
    record = outcome.to_dict()
    for pipeline in record["pipelines"]:
        pipeline["means"] = {
            name: value
            for name, value in pipeline["means"].items()
            if name.startswith("recall@") or name in KEPT_MEASURES
        }
        pipeline["against_baseline"] = {
            name: [*value["difference"], round(value["p_value"], 4)]
            for name, value in pipeline["against_baseline"].items()
        }
    return record


def summary(outcomes: Sequence[Outcome], steps: Steps) -> dict:
    """The means over the sets, and the steps, as plain values."""
    means = {
        ", ".join(o.dataset.name for o in chosen): {
            name: {
                measure: round(mean_over_sets(chosen, name, measure), 4)
                for measure in (*SHARES, "nDCG@10", "recall", "tokens", "ms", "llm calls", "llm tokens")
            }
            for name in common_names(chosen)
        }
        for chosen in means_over(outcomes)
    }
    taken = {
        part: {
            "with": pair[0],
            "without": pair[1],
            **{
                share: [round(v, 4) for v in (*found.difference, found.p_value)]
                for share in SHARES
                for found in (compare_means(outcomes, pair[0], pair[1], share),)
            },
        }
        for part, pair in _known(outcomes, steps)
    }
    return {"means": means, "steps": taken}


def _mean_table(outcomes: Sequence[Outcome]) -> str:
    names, baseline = common_names(outcomes), outcomes[0].baseline
    asks = any(mean_over_sets(outcomes, name, "llm tokens") for name in names)
    best = {s: max(mean_over_sets(outcomes, name, s) for name in names) for s in SHARES}
    body = []
    for name in names:
        cells = [name]
        for share in SHARES:
            mean = mean_over_sets(outcomes, name, share)
            number = f"**{100 * mean:.1f}**" if mean == best[share] else f"{100 * mean:.1f}"
            cells.append(number + _sign(compare_means(outcomes, name, baseline, share)))
        cells += [
            f"{mean_over_sets(outcomes, name, 'nDCG@10'):.3f}",
            f"{100 * mean_over_sets(outcomes, name, 'recall'):.1f}",
            f"{mean_over_sets(outcomes, name, 'tokens'):,.0f}",
            f"{mean_over_sets(outcomes, name, 'ms'):.1f}",
            *([f"{mean_over_sets(outcomes, name, 'llm tokens'):,.0f}"] if asks else []),
        ]
        body.append(cells)
    header = ["pipeline", *map(str, BUDGETS), "nDCG@10", "kept recall", "kept tokens", "ms a question"]
    return format_markdown([*header, *(["tokens asked"] if asks else [])], body)


def _step_table(outcomes: Sequence[Outcome], steps: Steps) -> str:
    body = []
    for part, (name, other) in _known(outcomes, steps):
        cells = [part]
        for share in SHARES:
            found = compare_means(outcomes, name, other, share)
            mean, low, high = found.difference
            cells.append(f"{_bold(f'{100 * mean:+.1f}', found)} ± {50 * (high - low):.1f}")
        for outcome in outcomes:
            values = [_measured(outcome, n).values[f"recall@{STEP_BUDGET}"] for n in (name, other)]
            found = compare_paired(*values, groups=_groups(outcome))
            cells.append(_bold(f"{100 * found.difference.mean:+.1f}", found))
        for measure, form in (("tokens", "+,.0f"), ("ms", "+.1f")):
            cost = mean_over_sets(outcomes, name, measure) - mean_over_sets(outcomes, other, measure)
            cells.append(format(cost, form))
        body.append(cells)
    sets = [f"{outcome.dataset.name}@{STEP_BUDGET}" for outcome in outcomes]
    return format_markdown(["part", *map(str, BUDGETS), *sets, "tokens", "ms"], body)


def _set_table(outcome: Outcome) -> str:
    best = {share: max(row.means[share].mean for row in outcome.rows) for share in SHARES}
    asks = any(row.means["llm tokens"].mean for row in outcome.rows)
    body = []
    for row in outcome.rows:
        cells = [row.name]
        for share in SHARES:
            mean, low, high = row.means[share]
            comparison = row.against_baseline.get(share)
            sign = _sign(comparison) if comparison is not None else ""
            number = f"**{100 * mean:.1f}**" if mean == best[share] else f"{100 * mean:.1f}"
            cells.append(f"{number} ± {50 * (high - low):.1f}{sign}")
        cells += [
            f"{row.means['nDCG@10'].mean:.3f}",
            f"{100 * row.means['useful@450'].mean:.1f}",
            f"{100 * row.means['recall'].mean:.1f}",
            f"{row.means['tokens'].mean:,.0f}",
            f"{row.means['ms'].mean:.1f}",
            f"{row.facts['build_seconds']:.1f}",
            *([f"{row.means['llm tokens'].mean:,.0f}"] if asks else []),
        ]
        body.append(cells)
    header = ["pipeline", *map(str, BUDGETS)]
    header += ["nDCG@10", "useful@450", "kept recall", "kept tokens", "ms", "build s"]
    return format_markdown([*header, *(["tokens asked"] if asks else [])], body)


def _known(outcomes: Sequence[Outcome], steps: Steps) -> Iterator[tuple[str, Sequence[str]]]:
    """The steps whose pipelines ran on all sets."""
    names = common_names(outcomes)
    return ((part, pair) for part, pair in steps.items() if all(name in names for name in pair))


def _sign(comparison: Comparison) -> str:
    if comparison.p_value >= SIGNIFICANT:
        return ""
    return " +" if comparison.difference.mean > 0 else " -"


def _bold(text: str, comparison: Comparison) -> str:
    return f"**{text}**" if comparison.p_value < SIGNIFICANT else text


def row_of(outcome: Outcome, name: str) -> Row:
    """The row of a pipeline."""
    return next(row for row in outcome.rows if row.name == name)


def _measured(outcome: Outcome, name: str) -> Measured:
    return next(one for one in outcome.measured if one.name == name)


def _groups(outcome: Outcome) -> list[str]:
    return [question.group for question in outcome.measurer.dataset.questions]
