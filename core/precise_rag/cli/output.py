"""Output of the commands: JSON for machines, aligned lines for people."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from precise_rag.types import Selection
from precise_rag.viz.page import shorten

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Subparsers = Any


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    print(json.dumps(value, ensure_ascii=False))


def selection_record(selection: Selection) -> list[dict[str, Any]]:
    """Return the decisions of a selection as plain values."""
    return [
        {
            "rank": decision.rank,
            "kept": decision.kept,
            "reason": decision.reason,
            "score": decision.candidate.score,
            "score_scale": decision.candidate.score_scale,
            "scores": dict(decision.candidate.scores),
            "doc_id": decision.candidate.doc_id,
            "start": decision.candidate.start,
            "end": decision.candidate.end,
            "n_tokens": decision.candidate.n_tokens,
            "text": decision.candidate.text,
        }
        for decision in selection.decisions
    ]


def print_selection(selection: Selection, *, dropped: int = 3, width: int = 72) -> None:
    """Print one line per kept candidate, then the cut with its reason and the first dropped candidates.

    dropped: candidates to print after the cut. width: characters of text per line.
    """
    decisions = selection.decisions
    last = max((decision.rank for decision in decisions if decision.kept), default=0)
    after = [d for d in decisions if d.rank > last and not d.reason.startswith("repeats")][:dropped]
    for rank, candidate, kept, reason in [*(d for d in decisions if d.kept), *after]:
        if after and rank == after[0].rank:
            print(f"  ── cut after rank {last}: {reason}")
        text = shorten(" ".join(candidate.text.split()), width)
        print(f"  {rank:>3} {'keep' if kept else 'drop'} {candidate.score:6.3f}  {text:<{width}}  {reason}")
    repeated = sum(not d.kept and d.reason.startswith("repeats") for d in decisions)
    others = sum(not d.kept for d in decisions) - len(after) - repeated
    if others or repeated:
        print(f"      … and {others} more dropped, {repeated} repetitions left out")


def count_kept_tokens(selection: Selection) -> int:
    """Return the tokens of the kept candidates, counted by the index."""
    return sum(candidate.n_tokens or 0 for candidate in selection.kept)
