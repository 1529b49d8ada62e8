"""Compare the pipelines of a plan over the development sets, in one command.

    python -m benchmarks.compare peers --data DIR             # other libraries and ours
    python -m benchmarks.compare ablation --data DIR          # our parts on and off

The plan is benchmarks/<folder>/pipelines.toml, or another file of the folder. Writes
benchmarks/results/<name>-<date>.md and, in the work folder, an HTML report. With --pipelines,
which runs a few of a plan, the name ends in "-few". An interrupted run continues where it stopped. Vectors
are cached by content in the work folder. Pipelines that ask a language model while they retrieve run with
--llm, through any OpenAI-compatible server. Questions about documents that the packaged reranker was trained
on are left out; the documents stay.
"""

import tomllib
import warnings
from collections.abc import Sequence
from pathlib import Path

import benchmarks.peers.searches
import benchmarks.peers.splitters  # noqa: F401
from benchmarks import record
from benchmarks.compare_tables import render_markdown
from benchmarks.questions import question_sets
from precise_rag.evaluation.report.page import render_report
from precise_rag.evaluation.runs.evaluate import evaluate
from precise_rag.evaluation.runs.plan import Plan, load_plan
from precise_rag.llm import OpenAIChat

HERE = Path(__file__).parent
SETS = "squad,fairytaleqa,hotpotqa,nq,covidqa,cuad,qmsum"


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, "", sample=200)
    parser.add_argument(
        "plan", help="a folder of benchmarks/ with a pipelines.toml, or folder/name of a file"
    )
    parser.add_argument(
        "--pipelines", nargs="+", metavar="NAME", help="only these of the plan, and its baseline"
    )
    record.add_encoder(parser)
    parser.add_argument("--name", help="of the result (default: that of the plan)")
    parser.add_argument("--llm", metavar="MODEL", help="for the pipelines that ask a language model")
    parser.add_argument("--base-url", help="server of the chat model (default: OPENAI_BASE_URL, or OpenAI)")
    args = parser.parse_args()
    warnings.simplefilter("ignore")

    folder, _, file = args.plan.partition("/")
    path = HERE / folder / f"{file or 'pipelines'}.toml"
    plan, extra = load_plan(path), tomllib.loads(path.read_text("utf-8")).get("benchmark", {})
    name = args.name or (file or folder) + ("-few" if args.pipelines else "")
    if args.pipelines:
        plan = few(plan, args.pipelines)
    args.sets = args.sets or extra.get("sets", SETS)
    encoder = record.cached_encoder(args)
    llm = OpenAIChat(args.llm, base_url=args.base_url) if args.llm else None
    outcomes = []
    for dataset in list(question_sets(args)):
        chosen = for_set(plan, dataset.name, extra.get("slow", ()), extra.get("slow_sets", ()))
        outcomes += evaluate(
            chosen, [dataset], encoder, args.work / "runs", seed=args.seed, llm=llm, show_progress=True
        )
        print(dataset.name, "done", outcomes[-1].failed or "", flush=True)
    made = record.made(__spec__.name, args)
    path = record.save(name, made, render_markdown(file or folder, encoder.name, outcomes, extra))
    report = args.work / f"{name}.html"
    report.write_text(render_report(outcomes, made), encoding="utf-8")
    print(f"{path}; report: {report}")


def few(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with its baseline and the named pipelines alone."""
    unknown = set(names) - {p.name for p in plan.pipelines}
    if unknown:
        raise SystemExit(f"the plan has no pipeline {', '.join(sorted(unknown))}")
    return plan._replace(
        pipelines=tuple(p for p in plan.pipelines if p.name in names or p.name == plan.baseline)
    )


def for_set(plan: Plan, name: str, slow: Sequence[str], slow_sets: Sequence[str]) -> Plan:
    """The plan without its slow pipelines, except on the sets that they are run on."""
    if not slow_sets or name in slow_sets:
        return plan
    return plan._replace(pipelines=tuple(p for p in plan.pipelines if p.name not in slow))


if __name__ == "__main__":
    main()
