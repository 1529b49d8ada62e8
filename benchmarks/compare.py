"""Compare the pipelines of a plan over the development sets, in one command.

    python benchmarks/compare.py peers    --data DIR     # other libraries and ours
    python benchmarks/compare.py ablation --data DIR     # our parts on and off

Writes benchmarks/results/<plan>-<date>.{json,md,svg} and, in the work folder, a report to read.
Interrupted, it goes on where it stopped. Vectors are cached by content in the work folder.
"""

import argparse
import json
import os
import tomllib
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from precise_rag.encoders import DEFAULT_ENCODER, CachedEncoder, load_encoder
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.evaluate import Outcome, circumstances, evaluate
from precise_rag.evaluation.evidence import BUDGETS
from precise_rag.evaluation.pipelines import Plan, load_plan
from precise_rag.evaluation.plots import line_chart
from precise_rag.evaluation.report import render_report
from precise_rag.evaluation.tables import format_markdown

HERE = Path(__file__).parent
SETS = "squad,fairytaleqa,hotpotqa,nq,covidqa,cuad,qmsum"
_LEGEND = """\
Recall of evidence characters (%) when 200 / 400 / 800 / 1,600 tokens are sent; the last piece is cut where
the budget is full. {encoder} for all; the whole collection is searched. ± is half of the 95 % bootstrap
interval, documents drawn whole; **bold**: the column's best; + or -: differs from {baseline} (paired test,
p < 0.05). Kept recall and kept tokens: all that the pipeline keeps, at most its top_k. build s: cutting and
indexing with vectors from the cache; ms: one question, one thread, on a machine that did other work too.
"""
KEPT_MEASURES = ("useful@450", "MRR@10", "nDCG@10", "recall", "tokens", "ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="a folder of benchmarks/ with a pipelines.toml")
    parser.add_argument(
        "--data", default=os.environ.get("PRECISE_DATA"), help="folder of the development sets"
    )
    parser.add_argument("--sets", default=SETS, help="default: %(default)s")
    parser.add_argument(
        "--sample", type=int, default=300, help="questions a set at most (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--work", type=Path, default=Path("evaluation"), help="runs and vectors (default: %(default)s)"
    )
    parser.add_argument(
        "--vectors", type=Path, help="vector cache (default: vectors.sqlite in the work folder)"
    )
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="where the tables go (default: %(default)s)"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")

    path = HERE / args.plan / "pipelines.toml"
    plan, extra = load_plan(path), tomllib.loads(path.read_text("utf-8")).get("benchmark", {})
    datasets = [
        load_development_set(name, args.data).with_evidence().sample(args.sample, args.seed)
        for name in args.sets.split(",")
    ]
    encoder = CachedEncoder(load_encoder(DEFAULT_ENCODER), args.vectors or args.work / "vectors.sqlite")
    outcomes = []
    for dataset in datasets:
        chosen = for_set(plan, dataset.name, extra.get("slow", ()), extra.get("slow_sets", ()))
        outcomes += evaluate(
            chosen, [dataset], encoder, args.work / "runs", seed=args.seed, show_progress=True
        )
        print(dataset.name, "done", outcomes[-1].failed or "", flush=True)
    made = {"command": f"python benchmarks/compare.py {args.plan}", **circumstances(args.seed)}
    made["questions a set at most"] = args.sample
    stem = args.results / f"{args.plan}-{made['date']}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".md").write_text(render_markdown(outcomes, made), encoding="utf-8")
    stem.with_suffix(".svg").write_text(render_svg(outcomes, extra.get("plot", ())), encoding="utf-8")
    results = [compact(outcome) for outcome in outcomes]
    stem.with_suffix(".json").write_text(
        json.dumps({"made": made, "results": results}, indent=1), encoding="utf-8"
    )
    report = args.work / f"{args.plan}.html"
    report.write_text(render_report(outcomes, made), encoding="utf-8")
    print(f"{stem}.md, .svg, .json; to read: {report}")


def for_set(plan: Plan, name: str, slow: Sequence[str], slow_sets: Sequence[str]) -> Plan:
    """The plan without its slow pipelines, except on the sets that they are run on."""
    if name in slow_sets:
        return plan
    return plan._replace(pipelines=tuple(p for p in plan.pipelines if p.name not in slow))


def complete(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The sets on which most pipelines ran."""
    most = max(len(outcome.rows) for outcome in outcomes)
    return [outcome for outcome in outcomes if len(outcome.rows) == most]


def common_names(outcomes: Sequence[Outcome]) -> list[str]:
    """Pipelines that ran on each of the sets."""
    ran = [{row.name for row in outcome.rows} for outcome in outcomes]
    return [row.name for row in outcomes[0].rows if all(row.name in names for names in ran)]


def mean_over_sets(outcomes: Sequence[Outcome], name: str, measure: str) -> float:
    """Each set counts the same."""
    rows = [next(row for row in outcome.rows if row.name == name) for outcome in outcomes]
    return float(np.mean([row.means[measure].mean for row in rows]))


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


def render_svg(outcomes: Sequence[Outcome], plotted: Sequence[str]) -> str:
    """Recall against tokens, mean over the sets on which all ran; other libraries in grey."""
    outcomes = complete(outcomes)
    names = [name for name in common_names(outcomes) if not plotted or name in plotted]
    series = {
        name: [(float(b), 100 * mean_over_sets(outcomes, name, f"recall@{b}")) for b in BUDGETS]
        for name in names
    }
    stock = {run.settings.name for run in outcomes[0].runs if run.settings.is_stock}
    chart = line_chart(
        series,
        x_label=f"tokens sent (mean of {', '.join(outcome.dataset.name for outcome in outcomes)})",
        y_label="evidence that arrives",
        muted=[name for name in names if name in stock],
        height=420,
    )
    style = "text{font:11px sans-serif;fill:#555}.grid{stroke:#e3e5ea}.title{font-weight:bold}"
    opening, rest = chart.split(">", 1)
    return f'{opening} xmlns="http://www.w3.org/2000/svg"><style>{style}</style>{rest}'


def render_markdown(outcomes: Sequence[Outcome], made: dict) -> str:
    """Means over the sets, then one table a set."""
    libraries = ", ".join(f"{library} {number}" for library, number in made["libraries"].items())
    parts = [
        f"# {made['command'].split()[-1].capitalize()}, {made['date']}\n",
        f"`{made['command']} --data DIR`: {made['machine']}, Python {made['python']}, seed {made['seed']}, "
        f"at most {made['questions a set at most']} questions a set; {libraries}.\n",
        _LEGEND.format(encoder=DEFAULT_ENCODER, baseline=outcomes[0].baseline),
    ]
    fullest = complete(outcomes)
    for chosen in (outcomes, fullest)[: 1 + (len(fullest) < len(outcomes))]:
        sets = ", ".join(outcome.dataset.name for outcome in chosen)
        parts += [f"\n## Mean over {sets}\n", _mean_table(chosen, common_names(chosen))]
    for outcome in outcomes:
        size = (
            f"{len(outcome.dataset.documents):,} documents, {len(outcome.judge.dataset.questions)} questions"
        )
        parts += [f"\n## {outcome.dataset.name}: {size}\n", _set_table(outcome)]
        parts += [f"\n{name} did not run: {why}\n" for name, why in outcome.failed.items()]
    return "\n".join(parts) + "\n"


def _mean_table(outcomes: Sequence[Outcome], names: Sequence[str]) -> str:
    measures = [*(f"recall@{b}" for b in BUDGETS), "nDCG@10", "recall", "tokens", "ms"]
    table = {name: [mean_over_sets(outcomes, name, measure) for measure in measures] for name in names}
    best = [max(values[column] for values in table.values()) for column in range(len(BUDGETS))]
    body = []
    for name, values in table.items():
        shares = [
            f"**{100 * v:.1f}**" if v == top else f"{100 * v:.1f}"
            for v, top in zip(values, best, strict=False)
        ]
        ndcg, recall, tokens, ms = values[len(BUDGETS) :]
        body.append([name, *shares, f"{ndcg:.3f}", f"{100 * recall:.1f}", f"{tokens:,.0f}", f"{ms:.1f}"])
    header = ["pipeline", *map(str, BUDGETS), "nDCG@10", "kept recall", "kept tokens", "ms a question"]
    return format_markdown(header, body)


def _set_table(outcome: Outcome) -> str:
    best = {b: max(row.means[f"recall@{b}"].mean for row in outcome.rows) for b in BUDGETS}
    body = []
    for row in outcome.rows:
        cells = [row.name]
        for budget in BUDGETS:
            mean, low, high = row.means[f"recall@{budget}"]
            comparison = row.against_baseline.get(f"recall@{budget}")
            sign = ""
            if comparison is not None and comparison.p_value < 0.05:
                sign = " +" if comparison.difference.mean > 0 else " -"
            number = f"**{100 * mean:.1f}**" if mean == best[budget] else f"{100 * mean:.1f}"
            cells.append(f"{number} ± {50 * (high - low):.1f}{sign}")
        cells += [
            f"{row.means['nDCG@10'].mean:.3f}",
            f"{100 * row.means['useful@450'].mean:.1f}",
            f"{100 * row.means['recall'].mean:.1f}",
            f"{row.means['tokens'].mean:,.0f}",
            f"{row.means['ms'].mean:.1f}",
            f"{row.facts['build_seconds']:.1f}",
        ]
        body.append(cells)
    header = [
        "pipeline",
        *map(str, BUDGETS),
        "nDCG@10",
        "useful@450",
        "kept recall",
        "kept tokens",
        "ms",
        "build s",
    ]
    return format_markdown(header, body)


if __name__ == "__main__":
    main()
