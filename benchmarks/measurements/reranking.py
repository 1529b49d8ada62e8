"""The section about reranking, selection and filters."""

from benchmarks.measurements.results import newest
from benchmarks.measurements.tables import TITLES, mean, section
from precise_rag.evaluation.report.tables import format_markdown

SELECTION = {"min_k": 7, "ratio": 0.3}
LIMITS = {"a quarter of the best": (None, 0.25), "0.02": (0.02, None), "none": (None, None)}
"""Settings of gradient selection, its default first: `min_score` and `share_of_best`, as shown."""


def reranking() -> str:
    """Rerankers, and what follows them."""
    result = newest("reranking", "measure")
    label = {"unseen": "sets that nothing was trained on", "half seen": "unseen documents of known kinds"}
    gains = [
        [
            label[row["sets"]],
            row["kind"],
            row["ranker"],
            f"{row['gain']:+.3f}",
            f"{row['low']:+.3f} to {row['high']:+.3f}",
        ]
        for row in result.data["differences"]
    ]
    costs = []
    for row in result.data["reliability"]:
        rows = [r for r in result.data["rows"] if (r["ranker"], r["kind"]) == (row["ranker"], row["kind"])]
        ndcg = [r["nDCG@10"] for name in ("unseen sets", "all") for r in rows if r["set"] == name]
        ms = mean([r for r in rows if r["questions"]], "ms")
        figures = (*ndcg, row["ECE"], row["log loss"])
        costs.append([row["ranker"], row["kind"], *(f"{value:.3f}" for value in figures), f"{ms:.1f}"])
    return section(
        "Reranking",
        [
            "What does a reranker gain over the order of the search, and what does it cost?",
            result.source,
            "Points of nDCG@10 gained, with the 95 % interval:",
            format_markdown(["measured on", "candidates", "reranker", "gain", "interval"], gains),
            "nDCG@10, how good the probabilities are (expected calibration error, log loss), and CPU "
            "milliseconds a question:",
            format_markdown(
                ["reranker", "candidates", "nDCG@10, unseen sets", "nDCG@10, all", "ECE", "log loss", "ms"],
                costs,
            ),
            *_hostile(),
            *_selection(),
            *_redundancy(),
            *_relevance(),
            "The cards of the [packaged reranker](models/reranker.md) and the "
            "[cascade](models/reranker-cascade.md) say what they were trained on; the second also says what "
            "happens in other languages. No downloaded cross-encoder was measured.",
        ],
    )


def _hostile() -> list[str]:
    result = newest("reranking", "hostile")
    body = []
    for key in dict.fromkeys(
        (r["reranker"], r["documents"], r["texts of each"]) for r in result.data["rows"]
    ):
        rows = [r for r in result.data["rows"] if (r["reranker"], r["documents"], r["texts of each"]) == key]
        means = [f"{mean(rows, name):.3f}" for name in ("best", "change")]
        worst = f"{min(row['worst'] for row in rows):.3f}"
        body.append([*map(str, key), *means, worst, f"{100 * mean(rows, 'another first'):.0f}"])
    header = ["reranker", "documents", "texts of each", "best", "change", "worst", "another first (%)"]
    return [
        "### Hostile documents",
        f"{result.source} Texts that repeat the question, with higher retrieval scores than all others. "
        "*best*: the probability of the best honest candidate without them, the mean of the sets; *change*: "
        "what they do to it; *worst*: in one of the questions; *another first*: another honest candidate is "
        "the best one then.",
        format_markdown(header, body),
    ]


def _selection() -> list[str]:
    result = newest("reranking", "gradient-cascade")
    names = ("chunks", "tokens", "recall", "fixed tokens", "saved")
    body = []
    for limit, (floor, of_best) in LIMITS.items():
        wanted = {**SELECTION, "min_score": floor, "share_of_best": of_best}
        for row in result.data["rows"]:
            if all(row[key] == value for key, value in wanted.items()):
                chunks, tokens, recall, fixed, saved = (row[name] for name in names)
                cells = [f"{chunks:.1f}", f"{tokens:,.0f}", f"{100 * recall:.1f}"]
                cells += [f"{fixed:,.0f}", f"{100 * saved:+.1f} %"]
                body.append([TITLES.get(row["set"], row["set"]), limit, *cells])
    header = ["set", "lowest score", "sentences kept", "tokens", "recall (%)", "fixed k, tokens", "saved"]
    return [
        "### Gradient selection",
        result.source,
        "Tokens that the selection sends, against a fixed number of sentences (k) with the same recall. "
        "Recall is of the evidence among the candidates.",
        format_markdown(header, body),
    ]


def _redundancy() -> list[str]:
    result = newest("reranking", "redundancy")
    body = []
    for by, threshold in dict.fromkeys((row["by"], row["threshold"]) for row in result.data["rows"]):
        rows = [r for r in result.data["rows"] if (r["by"], r["threshold"]) == (by, threshold)]
        shares = [f"{100 * mean(rows, name):.1f}" for name in ("removed", "lost")]
        body.append([by, str(threshold), *shares, f"{mean(rows, 'ms'):.1f}"])
    header = ["by", "threshold", "candidates removed (%)", "evidence lost (%)", "ms"]
    return ["### Redundancy filter", f"{result.source} Mean of the sets.", format_markdown(header, body)]


def _relevance() -> list[str]:
    result = newest("reranking", "llm-cost")
    names = ("calls", "input tokens", "output tokens", "estimate")
    body = []
    for mode in dict.fromkeys(row["mode"] for row in result.data["rows"]):
        rows = [row for row in result.data["rows"] if row["mode"] == mode]
        body.append([mode, *(f"{mean(rows, name):,.0f}" for name in names)])
    return [
        "### Relevance filter",
        f"{result.source} Calls and tokens a question; `estimate` is what the filter says before it asks.",
        format_markdown(["mode", "calls", "input tokens", "output tokens", "estimate (tokens)"], body),
    ]
