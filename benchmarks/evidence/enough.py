"""The default selection against fixed budgets of the same mean tokens.

    python -m benchmarks.evidence.enough --data DIR [--sets dev/squad,train/faq] [--sample 22] [--without 7]

The whole path over documents of a set in seeded order, up to --characters; of halved development sets, those
that no model of ours was trained on. Without the questions that the seed --without draws: the numbers of the
selection were chosen on those. Recall: share of a question's evidence characters in the excerpts that are
sent, mean over the questions of a set, then over the sets. Tokens: of the excerpts, with 12 for each piece.

A fixed budget sends the likeliest sentences, as excerpts, while they fit. "one": the same budget for all
sets. "same": for each set the budget that sends as many tokens there as the selection. "own": for each set
the best budget of its own, at the same mean tokens over all sets: chosen on half of its questions and
measured on the other half, both ways. The interval draws the questions of each set anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.questions import drawn, unseen
from benchmarks.sent import covered
from benchmarks.tables import table
from precise_rag import PreciseRAG
from precise_rag.evaluation import Question
from precise_rag.excerpts import excerpts_of
from precise_rag.index import HybridIndex
from precise_rag.types import Candidate, Document, Selection, best_first
from training.candidate_lists import read_set

MODULE = "benchmarks.evidence.enough"
SETS = (
    "dev/covidqa,dev/cuad,dev/fairytaleqa,dev/hotpotqa,dev/qmsum,dev/squad,train/friendsqa,train/faq,"
    "train/medquad,train/tatqa,train/squadshifts,train/headings"
)
BUDGETS = (60, 90, 120, 160, 200, 250, 300, 350, 400, 450, 500, 600, 700, 850, 1000, 1300, 1700, 2200)
_PIECE_TOKENS = 12
_LEVELS = ((0.0, 0.3), (0.3, 0.7), (0.7, 1.01))
_COSTS = np.geomspace(5e-5, 3e-3, 25)
"""Recall that a token must bring, from large budgets to small ones."""


class Sent(NamedTuple):
    """What is sent for a question. best: the probability of the best sentence. fixed: (budgets, 2) tokens and
    recall of the fixed budgets."""

    recall: float
    tokens: int
    pieces: int
    sentences: int
    best: float
    fixed: np.ndarray


def measure(documents: Sequence[Document], questions: Sequence[Question], encoder: Any) -> Iterator[Sent]:
    """What the selection and the fixed budgets send for each question."""
    rag = PreciseRAG(HybridIndex.build(documents, encoder))
    for question in questions:
        selection = rag.retrieve(question.text)
        ranked = best_first(
            d.candidate for d in selection.decisions if d.candidate.score_scale == "probability"
        )
        fixed = np.array(list(_fixed(question, selection, ranked)))
        best = ranked[0].score if ranked else 0.0
        yield Sent(*_sent(question, selection), len(selection.kept), best, fixed)


def _sent(question: Question, selection: Selection) -> tuple[float, int, int]:
    excerpts = excerpts_of(selection, piece_tokens=lambda piece: _PIECE_TOKENS)
    tokens = sum((one.n_tokens or 0) + _PIECE_TOKENS for one in excerpts)
    return covered(question, excerpts), tokens, len(excerpts)


def _fixed(
    question: Question, selection: Selection, ranked: Sequence[Candidate]
) -> Iterator[tuple[int, float]]:
    sent = []
    for n in (0, *range(1, 16), *range(17, 60, 3), *range(60, len(ranked) + 1, 8)):
        best = replace(Selection.keep_all(ranked[:n]), stretches=selection.stretches)
        recall, tokens, _ = _sent(question, best)
        sent.append((tokens, recall))
        if n >= len(ranked) or tokens > BUDGETS[-1]:
            break
    for budget in BUDGETS:
        yield [one for one in sent if one[0] <= budget][-1]


def one_budget(sets: Sequence[np.ndarray], tokens: float) -> float:
    """Recall of the budget that sends so many tokens on the mean of the sets."""
    mean = np.mean([fixed.mean(axis=0) for fixed in sets], axis=0)
    return float(np.interp(tokens, mean[:, 0], mean[:, 1]))


def own_budgets(sets: Sequence[np.ndarray], tokens: float) -> float:
    """Recall of the best budget of each set at so many tokens on their mean, chosen on other questions."""
    reached = []
    for cost in _COSTS:
        halves = []
        for fixed in sets:
            for chosen_on, measured_on in ((fixed[::2], fixed[1::2]), (fixed[1::2], fixed[::2])):
                mean = chosen_on.mean(axis=0)
                best = int(np.argmax(mean[:, 1] - cost * mean[:, 0]))
                halves.append(measured_on[:, best].mean(axis=0))
        reached.append(np.mean(halves, axis=0))
    curve = np.array(sorted(map(tuple, reached)))
    return float(np.interp(tokens, curve[:, 0], np.maximum.accumulate(curve[:, 1])))


def summary(found: Mapping[str, Sequence[Sent]], seed: int) -> dict[str, Any]:
    """The gain of the selection over the fixed budgets, and what is sent by how probable the best is."""
    ours = {name: np.array([(s.tokens, s.recall) for s in sent]) for name, sent in found.items()}
    fixed = {name: np.stack([s.fixed for s in sent]) for name, sent in found.items()}

    def gain(rows: Mapping[str, np.ndarray]) -> float:
        tokens, recall = np.mean([ours[name][rows[name]].mean(axis=0) for name in found], axis=0)
        return float(recall - one_budget([fixed[name][rows[name]] for name in found], tokens))

    rng = np.random.default_rng(seed)
    again = [
        gain({name: rng.integers(0, len(sent), len(sent)) for name, sent in found.items()})
        for _ in range(1000)
    ]
    tokens, recall = np.mean([values.mean(axis=0) for values in ours.values()], axis=0)
    same = [one_budget([fixed[name]], values[:, 0].mean()) for name, values in ours.items()]
    every = [one for sent in found.values() for one in sent]
    levels = [[s for s in every if low <= s.best < high] for low, high in _LEVELS]
    return {
        "recall": float(recall),
        "tokens": float(tokens),
        "one": gain({name: np.arange(len(sent)) for name, sent in found.items()}),
        "interval": [float(value) for value in np.quantile(again, (0.025, 0.975))],
        "same": float(recall - np.mean(same)),
        "own": float(recall - own_budgets(list(fixed.values()), tokens)),
        "levels": [{"questions": len(some), **_means(some)} for some in levels if some],
    }


_KEYS = ("recall", "tokens", "pieces", "sentences")


def main() -> None:
    parser = record.parse_arguments(MODULE, __doc__, SETS, sample=22)
    record.add_characters(parser, 90_000)
    parser.add_argument("--without", type=int, default=7, help="seed whose questions are left out")
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    found: dict[str, list[Sent]] = {}
    for name in args.sets.split(","):
        dataset = read_set(name, args.data)
        dataset = unseen(dataset) if name.startswith("dev/") else dataset
        used = {q.id for q in drawn(dataset, args.characters, args.without)[1][: args.sample]}
        documents, questions = drawn(dataset, args.characters, args.seed)
        asked = [q for q in questions if q.id not in used][: args.sample]
        found[name] = list(measure(documents, asked, encoder))
        print(name, len(asked), _means(found[name]), flush=True)
    total = summary(found, args.seed)
    sets = {name: _means(sent) for name, sent in found.items()}
    mean = {key: float(np.mean([means[key] for means in sets.values()])) for key in _KEYS}
    rows = [_row("set", name, len(found[name]), means) for name, means in sets.items()]
    low, high = (f"{100 * bound:+.1f}" for bound in total["interval"])
    gains = {key: f"{100 * total[key]:+.1f}" for key in ("one", "same", "own")}
    gains["one"] += f" ({low} to {high})"
    levels = [
        _row("best probability", f"{low:g} to {min(high, 1.0):g}", level["questions"], level)
        for (low, high), level in zip(_LEVELS, total["levels"], strict=False)
    ]
    parts = (
        f"# Enough\n\n{record.about(__doc__)}",
        table([*rows, _row("set", "mean", "", mean)]),
        table([{"against a budget": key, "points": value} for key, value in gains.items()]),
        table(levels),
    )
    data = {"summary": total, "sets": {name: [list(s[:-1]) for s in sent] for name, sent in found.items()}}
    record.save("evidence", "enough", record.made(MODULE, args), "\n\n".join(parts), data)


def _means(sent: Sequence[Sent]) -> dict[str, float]:
    return {key: float(np.mean([getattr(s, key) for s in sent])) for key in _KEYS}


def _row(first: str, name: str, questions: Any, means: Mapping[str, Any]) -> dict[str, Any]:
    return {
        first: name,
        "questions": questions,
        "recall (%)": 100 * means["recall"],
        "tokens": round(means["tokens"]),
        "pieces": means["pieces"],
        "sentences": means["sentences"],
    }


if __name__ == "__main__":
    main()
