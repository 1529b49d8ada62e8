"""The section about evidence that grows from what is found."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measurements.results import newest
from benchmarks.measurements.tables import TITLES, section
from precise_rag.evaluation.report.tables import format_markdown

BUDGETS = ("200", "400", "800", "1,600")
WAYS = ("sentences", "grown", "grown, left out", "grown, trained on these questions")


def evidence() -> str:
    """What growing gains, what the default selection sends, and what is left of stock chunks."""
    result, nodes = newest("evidence", "measure"), newest("evidence", "nodes-default")
    places, reading = newest("evidence", "two-places"), newest("evidence", "reading")
    sets = result.data["sets"]
    recall = [
        [_title(one), name, *(f"{100 * value:.1f}" for value in one["recall"][name])]
        for one in sets
        for name in WAYS
        if name in one["recall"]
    ]
    gains = [
        [_title(one), over, *map(_interval, values)]
        for one in sets
        for over, values in (("sentences", one["gain"]), ("the best", one["fewer"].get("gain")))
        if values
    ]
    selected = [
        [
            _title(one),
            *(_percent(one["selection"][name]) for name in ("recall", "kept", "saved")),
            f"{one['selection']['tokens']:,.0f}",
            *(f"{one['calibration'][name]:.3f}" for name in ("sentences", "spans", "chance")),
            f"{one['ms']:.0f}",
        ]
        for one in sets
    ]
    return section(
        "Evidence that grows",
        [
            "Does it pay to send found sentences with the neighbours that probably belong to them?",
            result.source,
            "Recall (%) by tokens sent, the likeliest sentences first. *Left out*: the growth model trained "
            "without the set, as on a new kind of collection. *Trained on these questions*: better growth "
            "can hardly reach more with this reranker. *Own documents*: the questions do not say which "
            "contract or meeting they are about, and a filter does.",
            format_markdown(["set", "sent", *BUDGETS], recall),
            "Points gained over single sentences and, where they were measured, over the best at each "
            "budget of single sentences, passages, and the best passage followed by sentences, for the "
            "first questions of a set; with the 95 % interval, documents redrawn in pairs:",
            format_markdown(["set", "over", *BUDGETS], gains),
            "The default selection: recall (%); share (%) that it keeps of the evidence among the found "
            "sentences; tokens (%) saved against the fixed number of sentences with the same mean recall, "
            "or, where no number reaches it, against all that were found, with a higher ratio; tokens sent; "
            "expected calibration "
            "error of sentences and of spans, and of as many spans that are perfectly calibrated; CPU "
            "milliseconds of growth a question.",
            format_markdown(
                ["set", "recall", "kept", "saved", "tokens", "ECE sentences", "ECE spans", "chance", "ms"],
                selected,
            ),
            "### Questions about two documents",
            places.source,
            "Two questions made one: the share of the two places of which something is sent, without and "
            "with the rule that a name which nothing selected mentions brings one sentence more.",
            format_markdown(*places.table()),
            "### Rounding and reading less",
            reading.source,
            "What int8, and stopping where four sentences in a row are improbable, do to the evidence that "
            "is sent: recall (%) of the default selection and within 200 to 1,600 tokens, with the "
            "difference to float32.",
            format_markdown(*reading.table()),
            "### In anybody's chunks",
            nodes.source,
            "What `EvidencePostprocessor` and `EvidenceCompressor` leave of stock chunks, and the share of "
            "the evidence in them that is lost.",
            format_markdown(*nodes.table()),
        ],
    )


def _title(one: Mapping[str, Any]) -> str:
    name, comma, within = one["set"].split("/")[1].partition(",")
    return f"{TITLES[name]}{comma}{within} ({one['questions']})"


def _interval(gain: Sequence[float]) -> str:
    mean, low, high = (100 * value for value in gain)
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share == share else "–"
