"""Growing found sentences to their neighbours."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Self

import numpy as np

from precise_rag.checks import check_number
from precise_rag.evidence.model import REACH, EvidenceModel, Growth, evidence_model
from precise_rag.evidence.needs import needs, of_entry, of_section
from precise_rag.evidence.stretches import stands_above
from precise_rag.protocols import Neighbours
from precise_rag.selection import ratio_scores
from precise_rag.structure.base64_runs import is_base64
from precise_rag.types import INSISTENT, UNSCORED, Candidate, Selection, Stretch, best_first, check_query

_READ = 2 * REACH
"""Sentences on each side that are read: what is announced goes on where nothing grows any more."""
_NEARLY = 0.999
_HAS_PROBABILITIES = ("probability", "logit")


class EvidenceGrower:
    """Stage that adds the sentences around the found ones that probably belong to the same evidence.

    Each sentence, found or not, is given the probability that it belongs to the evidence; see
    `EvidenceModel`. What a sentence needs to be understood is as probable as the sentence: what "it" stands
    for, the lead-in of a list or of code, and what a lead-in announces. A heading is no more
    probable than what is right below it, unless it is the best that was found there: it says nothing alone.
    Neighbours that are sent make spans together with the sentence they came along with.

    source: knows the neighbours of a sentence, such as an index of sentences; default: what a search
        found, as `over` gives it for each question.
    min_score: least probability of a neighbour; lower where even the best sentence has less; default 0.01.
    model: default: the packaged one.
    """

    def __init__(
        self, source: Neighbours | None = None, *, min_score: float = 0.01, model: EvidenceModel | None = None
    ) -> None:
        check_number("min_score", min_score, least=0, most=1)
        self.source = source
        self.min_score = min_score
        self.model = model or evidence_model()

    def over(self, source: Neighbours) -> Self:
        """Return a grower with the same settings over another source."""
        return type(self)(source, min_score=self.min_score, model=self.model)

    def grow(self, query: str, candidates: Sequence[Candidate]) -> Selection:
        """Return the candidates and their probable neighbours, the most probable first.

        query: not blank.
        candidates: sentences with probabilities or logits. On other scales, and if the source does not
            know them, candidates are returned as they are.
        All are kept; the reasons say what was found, and what came along with which sentence. The score
        that a found sentence had is in `scores["found"]`. The text around them is in `stretches`.
        """
        check_query(query)
        if self.source is None:
            return Selection.keep_all(candidates, "not grown: its neighbours are not known")
        found = {c.id: c for c in candidates if UNSCORED not in c.scores}
        if any(c.score_scale not in _HAS_PROBABILITIES for c in found.values()):
            return Selection.keep_all(candidates, "not grown: its score is not a probability")
        scores = dict(zip(found, ratio_scores(list(found.values())), strict=True))
        verdicts = {c.id: (c, "not grown: its neighbours are not known") for c in candidates}
        stretches = tuple(self.source.neighbours(list(found.values()), _READ))
        for stretch in stretches:
            verdicts |= self._grown(query, stretch, found, scores)
        ranked = best_first(candidate for candidate, _ in verdicts.values())
        selection = Selection.of((candidate, True, verdicts[candidate.id][1]) for candidate in ranked)
        return replace(selection, stretches=stretches)

    def _grown(
        self, query: str, stretch: Stretch, found: dict[str, Candidate], scores: dict[str, float]
    ) -> dict[str, tuple[Candidate, str]]:
        """Return the sentences of a stretch that are found or probable, each with its reason."""
        keys = [sentence.id for sentence in stretch.sentences]
        probability = np.array([scores.get(key, np.nan) for key in keys], dtype=np.float32)
        growth = self.model.grow(query, stretch, probability, self.min_score)
        needed_by: dict[int, int] = {}
        is_best = max((scores[key] for key in scores.keys() & {*keys}), default=0) >= max(scores.values())
        least = min(self.min_score, _NEARLY * growth.alone.max()) if is_best else self.min_score
        _without_mere_headings(stretch, growth, self.min_score)
        best = int(growth.alone.argmax()) if growth.alone.max() >= least else -1
        if best >= 0:
            growth, needed_by = _with_needs(query, stretch, growth)
        _without_mere_headings(stretch, growth, 0.0, best)
        grown = {}
        for row, (key, sentence) in enumerate(zip(keys, stretch.sentences, strict=True)):
            score = float(growth.probability[row])
            if former := found.get(key):
                earlier, why = {**former.scores, "found": former.score}, _why_found
            elif growth.source[row] >= 0 and score >= least and not is_base64(sentence.text):
                source = found[keys[growth.source[row]]].scores
                earlier, why = {INSISTENT: source[INSISTENT]} if INSISTENT in source else {}, _why_along
            else:
                continue
            kept = replace(former or sentence, score=score, score_scale="probability", scores=earlier)
            grown[key] = kept, why(growth, row, needed_by.get(row))
        return grown


def _without_mere_headings(stretch: Stretch, growth: Growth, least: float, best: int = -1) -> None:
    """Give a heading of at least `least`, but not the best, at most the probability of what is below it."""
    probability = growth.probability
    for row, pair in reversed([*enumerate(pairwise(stretch.sentences))]):
        if row != best and probability[row] >= least and stands_above(*pair):
            probability[row] = min(probability[row], _NEARLY * probability[row + 1])


def _with_needs(query: str, stretch: Stretch, growth: Growth) -> tuple[Growth, dict[int, int]]:
    """Give what a sentence needs its probability; see `needs`, for the best ones `of_entry` and `of_section`.

    It gets a trifle less, the less likely it is alone: if a record does not fit, its likeliest fields do.
    Returns the growth, and for each row that became more probable the row that needs it.
    """
    probability, source = growth.probability.copy(), growth.source.copy()
    needed_by: dict[int, int] = {}
    best = int(growth.alone.argmax())
    probability[best] = max(probability[best], growth.alone[best])  # a heading is worth its section
    worth = probability.copy()
    sections = of_section(query, stretch, growth.alone)
    for row, needed, share in chain(needs(stretch), of_entry(stretch, best), sections):
        nearly = share * worth[row] * (_NEARLY + (1 - _NEARLY) * growth.alone[needed])
        if nearly > probability[needed]:
            probability[needed] = nearly
            source[needed] = row if growth.alone[row] > 0 else growth.source[row]
            needed_by[needed] = row
    return growth._replace(probability=probability, source=source), needed_by


def _why_found(growth: Growth, row: int, needed_by: int | None) -> str:
    alone, probability = growth.alone[row], growth.probability[row]
    if needed_by is not None:
        return f"found, {alone:.2f}; needed by the {_which(row, needed_by)}, {probability:.2f}"
    if probability < alone:
        return f"found, {alone:.2f}; a heading is no more probable than the sentence below it"
    if probability - alone < 0.01:
        return f"found, {alone:.2f}"
    return f"found, {alone:.2f}; with the sentences around it {probability:.2f}"


def _why_along(growth: Growth, row: int, needed_by: int | None) -> str:
    if needed_by is not None:
        return f"needed by the {_which(row, needed_by)}, {growth.probability[row]:.2f}"
    source = int(growth.source[row])
    return f"came along with the {_which(row, source)}, which was found, {growth.alone[source]:.2f}"


def _which(row: int, other: int) -> str:
    """Where another sentence stands, as "next sentence" or "sentence 3 before it"."""
    steps = other - row
    beside = {1: "next sentence", -1: "previous sentence"}
    return beside.get(steps, f"sentence {abs(steps)} {'after' if steps > 0 else 'before'} it")
