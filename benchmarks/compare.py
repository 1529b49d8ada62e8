"""Compare the pipelines of a plan over the development sets, in one command.

    python benchmarks/compare.py peers    --data DIR     # other libraries and ours
    python benchmarks/compare.py ablation --data DIR     # our parts on and off

Writes benchmarks/results/<plan>-<date>.{json,md,svg} and, in the work folder, a report to read.
Interrupted, it goes on where it stopped. Vectors are cached by content in the work folder. Pipelines
that ask a language model while they retrieve run with --llm, through any OpenAI-compatible server.
Questions about documents that the packaged reranker was trained on are left out; the documents stay.
"""

import argparse
import json
import os
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.compare_tables import compact, render_markdown, render_svg, summary
from precise_rag.encoders import DEFAULT_ENCODER, CachedEncoder, load_encoder
from precise_rag.evaluation import Dataset, load_development_set
from precise_rag.evaluation.report.page import render_report
from precise_rag.evaluation.runs.evaluate import circumstances, evaluate
from precise_rag.evaluation.runs.pipelines import Plan, load_plan
from precise_rag.llm import OpenAIChat
from training.reranker.lists import HALVED, may_train_on

HERE = Path(__file__).parent
SETS = "squad,fairytaleqa,hotpotqa,nq,covidqa,cuad,qmsum"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="a folder of benchmarks/ with a pipelines.toml")
    parser.add_argument(
        "--data", default=os.environ.get("PRECISE_DATA"), help="folder of the development sets"
    )
    parser.add_argument("--sets", default=SETS, help="default: %(default)s")
    parser.add_argument(
        "--sample", type=int, default=200, help="questions a set at most (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--llm", metavar="MODEL", help="for the pipelines that ask a language model")
    parser.add_argument("--base-url", help="server of the chat model (default: OPENAI_BASE_URL, or OpenAI)")
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
        unseen(load_development_set(name, args.data).with_evidence()).sample(args.sample, args.seed)
        for name in args.sets.split(",")
    ]
    encoder = CachedEncoder(load_encoder(DEFAULT_ENCODER), args.vectors or args.work / "vectors.sqlite")
    llm = OpenAIChat(args.llm, base_url=args.base_url) if args.llm else None
    outcomes = []
    for dataset in datasets:
        chosen = for_set(plan, dataset.name, extra.get("slow", ()), extra.get("slow_sets", ()))
        outcomes += evaluate(
            chosen, [dataset], encoder, args.work / "runs", seed=args.seed, llm=llm, show_progress=True
        )
        print(dataset.name, "done", outcomes[-1].failed or "", flush=True)
    given = {"sets": args.sets, "sample": args.sample, "llm": args.llm}
    asked = "".join(f" --{k} {v}" for k, v in given.items() if v != parser.get_default(k))
    made = {"command": f"python benchmarks/compare.py {args.plan}{asked}", **circumstances(args.seed)}
    made["questions a set at most"] = args.sample
    stem = args.results / f"{args.plan}-{made['date']}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    steps = extra.get("steps", {})
    stem.with_suffix(".md").write_text(render_markdown(outcomes, made, steps), encoding="utf-8")
    plot = (extra.get("plot", {}), extra.get("points", {}), extra.get("title", ""))
    stem.with_suffix(".svg").write_text(render_svg(outcomes, *plot), encoding="utf-8")
    results = [compact(outcome) for outcome in outcomes]
    stem.with_suffix(".json").write_text(
        json.dumps({"made": made, **summary(outcomes, steps), "results": results}, indent=1) + "\n",
        encoding="utf-8",
    )
    report = args.work / f"{args.plan}.html"
    report.write_text(render_report(outcomes, made), encoding="utf-8")
    print(f"{stem}.md, .svg, .json; to read: {report}")


def unseen(dataset: Dataset) -> Dataset:
    """Without the questions about documents that the packaged reranker was trained on."""
    if dataset.name not in HALVED:
        return dataset
    return replace(dataset, questions=tuple(q for q in dataset.questions if not may_train_on(q.group)))


def for_set(plan: Plan, name: str, slow: Sequence[str], slow_sets: Sequence[str]) -> Plan:
    """The plan without its slow pipelines, except on the sets that they are run on."""
    if not slow_sets or name in slow_sets:
        return plan
    return plan._replace(pipelines=tuple(p for p in plan.pipelines if p.name not in slow))


if __name__ == "__main__":
    main()
