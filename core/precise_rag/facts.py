"""The facts about a piece of a document, as one text value in a framework object's metadata.

An adapter writes them when a piece becomes a node or a document. It reads them back when that object
reaches a later stage, also after a store has kept it. They are JSON, because stores differ in which
other values they take. Those that a foreign component has damaged are ignored. The entries, of which
those without a value are left out:

    doc_id, start, end   the document it was cut from, and its place there
    score, score_scale   its score and the scale of it
    scores               the scores of earlier stages, by name; null for one that nobody can know
    n_tokens             its length in tokens
    passage              [start, end] of the passage it belongs to
    window               [start, end] of that and at least three sentences on each side, for a store
    above                the title and the headings above it
    reason               why the last selection kept it
    sentences            of an excerpt: start, end, score, reason and page of each selected sentence in it
    page                 the page on which it begins, from 1
    time                 of captions: when what it begins with is said
    foreign_score        the score that another component had given it before
"""

import json
import math
import pickle
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from operator import itemgetter
from typing import Any, TypeGuard, get_args
from uuid import UUID, uuid5

from precise_rag.types import FIELDS_KEY, UNSCORED, Candidate, Excerpt, ScoreScale, Span, finite_score

FACTS_KEY = "precise"
"""Metadata key of the facts about a piece. Keys of ours in a document's own metadata are never read."""
LAYOUT_KEY = "precise_layout"
"""Metadata key of what a LlamaIndex node has besides its text and metadata, in an index."""
SOURCE_KEY = "precise_object"
"""Metadata key of the framework object that became a candidate."""
SECTION_KEY = "section"
"""Metadata key of the titles above an excerpt, for prompts that show them: not ours if a user wrote it."""
PAGES_KEY = "precise_pages"
"""Metadata key of where the pages or captions of a document begin, by `read_documents`; not for models."""
_PIECES = UUID("5d0c1b52-6f5c-5a3e-9b1e-0f1f6c2f7a41")
"""Namespace of the ids of pieces."""


def read_facts(source: Any) -> dict[str, Any]:
    """Return the facts about a piece, see the head of this module; empty if it has none.

    source: a LangChain document, a LlamaIndex node with or without score, or the metadata of one.
    """
    metadata = source if isinstance(source, Mapping) else getattr(source, "metadata", None)
    text = metadata.get(FACTS_KEY) if isinstance(metadata, Mapping) else None
    if not isinstance(text, str):
        return {}
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def place_at(metadata: Mapping[str, Any], offset: int) -> dict[str, int | str]:
    """Return the "page" or slide of a place, from 1, or the "time" of its caption; empty without either.

    metadata: of the document; `read_documents` writes into it the offset at which each page begins, and for
        each caption its offset and time.
    """
    pages = metadata.get(PAGES_KEY)
    if not isinstance(pages, list | tuple):
        return {}
    if all(isinstance(page, list | tuple) and [*map(type, page)] == [int, str] for page in pages):
        number = bisect_right(pages, offset, key=itemgetter(0))
        return {"time": pages[number - 1][1]} if number else {}
    number = bisect_right(pages, offset) if all(isinstance(page, int) for page in pages) else 0
    return {"page": number} if number else {}


def place_name(piece: Candidate) -> str:
    """Return where a piece begins and ends, as "page 3-4" or "00:01:20"; empty without pages or times."""
    last = max(piece.start, piece.start + len(piece.text.rstrip()) - 1)
    places = [place_at(piece.metadata, offset) for offset in (piece.start, last)]
    name = "-".join(dict.fromkeys(str(value) for place in places for value in place.values()))
    return f"page {name}" if "page" in places[0] else name


def place_facts(doc_id: str, span: Span) -> dict[str, Any]:
    """Return the facts about a place: a document's id and a span of its text."""
    return {"doc_id": doc_id, "start": int(span.start), "end": int(span.end)}


def candidate_facts(candidate: Candidate, reason: str = "") -> dict[str, Any]:
    """Return the facts about a candidate; `reason` says why a selection kept it."""
    facts = place_facts(candidate.doc_id, Span(candidate.start, candidate.end))
    facts |= {"score": candidate.score, "score_scale": candidate.score_scale}
    if candidate.scores:
        scores = candidate.scores.items()
        facts["scores"] = {name: None if math.isnan(score) else float(score) for name, score in scores}
    if candidate.n_tokens is not None:
        facts["n_tokens"] = int(candidate.n_tokens)
    if candidate.passage is not None:
        facts["passage"] = [int(offset) for offset in candidate.passage]
    facts |= place_at(candidate.metadata, candidate.start)
    if candidate.above:
        facts["above"] = list(candidate.above)
    if reason:
        facts["reason"] = reason
    if isinstance(candidate, Excerpt):
        facts["sentences"] = [
            {"start": one.start, "end": one.end, "score": one.score, "reason": why}
            | place_at(one.metadata, one.start)
            for _, one, _, why in candidate.sentences
        ]
    return facts


def write_facts(facts: Mapping[str, Any]) -> str:
    """Return the facts as the text that a metadata key holds."""
    return json.dumps(facts, separators=(",", ":"))


def noted_place(facts: Mapping[str, Any], length: int) -> tuple[str, Span] | None:
    """Return the noted document id and span; None without them, or if the text has another length."""
    doc_id, span = facts.get("doc_id"), _noted_span([facts.get("start"), facts.get("end")])
    return (doc_id, span) if isinstance(doc_id, str) and span and span.end - span.start == length else None


def piece_id(doc_id: str, start: int, end: int) -> str:
    """Return the id of a piece: a UUID made from its document's id and its place, the same in every run."""
    name = f"{doc_id}:{start}-{end}".encode("utf-8", "backslashreplace").decode()
    return str(uuid5(_PIECES, name))


def noted_scale(facts: Mapping[str, Any], score: object) -> ScoreScale | None:
    """Return the scale of `score`, or None if the facts are about another score.

    They are about another one after a foreign component, such as a fusion retriever, has rewritten it.
    """
    scale = facts.get("score_scale")
    known = scale in get_args(ScoreScale) and facts.get("score") == score
    return scale if known else None


def scores_on_a_scale(
    scored: Sequence[tuple[object, Mapping[str, Any]]], score_scale: ScoreScale | None
) -> tuple[list[float | None], ScoreScale]:
    """Return the scores of framework objects, and their scale; NaN for a score that cannot be used.

    scored: the score and the facts of each object. A score cannot be used if it is not a finite number, or
        if the facts say so.
    score_scale: the scale of a score that has no facts.
    The order given replaces all scores, on the "rank" scale, if the scales differ or one is unknown. It also
    does if a score is missing and no scale is given, or if no score can be used.
    """
    scores = [
        None if score is None and score_scale is None else _known_score(score, facts)
        for score, facts in scored
    ]
    if all(score is None or math.isnan(score) for score in scores):
        scores = [None] * len(scores)
    scales = {
        None if known is None else noted_scale(facts, score) or score_scale
        for known, (score, facts) in zip(scores, scored, strict=True)
        if known is None or not math.isnan(known)
    }
    scale = scales.pop() if len(scales) == 1 else None
    if scale:
        return scores, scale
    unusable = [score is not None and math.isnan(score) for score in scores]
    return [math.nan if nan else 0.0 - position for position, nan in enumerate(unusable)], "rank"


def _known_score(score: object, facts: Mapping[str, Any]) -> float:
    number = finite_score(score)
    unusable = noted_scale(facts, score) and UNSCORED in noted_fields(facts)["scores"]
    return math.nan if number is None or unusable else number


def noted_fields(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `n_tokens`, `passage`, `scores` and `above` for a Candidate."""
    scores, above = facts.get("scores"), facts.get("above")
    n_tokens = facts.get("n_tokens")
    return {
        "n_tokens": n_tokens if _is_count(n_tokens) else None,
        "passage": _noted_span(facts.get("passage")),
        "above": tuple(title for title in above if isinstance(title, str)) if isinstance(above, list) else (),
        "scores": {
            str(name): math.nan if number is None else number
            for name, score in (scores.items() if isinstance(scores, Mapping) else ())
            if (number := finite_score(score)) is not None or score is None
        },
    }


def _noted_span(value: object) -> Span | None:
    """Return a noted [start, end] as a span, or None if it is not one."""
    match value:
        case [start, end] if _is_count(start) and _is_count(end) and start <= end:
            return Span(start, end)
        case _:
            return None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def distinct_names(places: Iterable[tuple[str, Hashable]]) -> list[str]:
    """Return a name for each place: its own, with `#2`, `#3` … added from the second time that it comes.

    places: name, and what else tells the place from others of that name. A name that another place has
    is not given again.
    """
    places = list(places)
    taken = set(places)
    seen: Counter[tuple[str, Hashable]] = Counter()
    names = []
    for name, rest in places:
        seen[name, rest] += 1
        own = name
        while seen[name, rest] > 1 and (own := f"{name}#{seen[name, rest]}", rest) in taken:
            seen[name, rest] += 1
        taken.add((own, rest))
        names.append(own)
    return names


def without_own_keys(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a file or of a framework's document without our keys."""
    own = (FACTS_KEY, LAYOUT_KEY, SOURCE_KEY, FIELDS_KEY)
    return {key: value for key, value in metadata.items() if key not in own}


def copied(metadata: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a deep copy of metadata; a value that cannot be copied, such as a lock, is shared."""
    made = dict(metadata)
    for key, value in metadata.items():
        with suppress(Exception):
            made[key] = deepcopy(value)
    return made


def is_same(one: Any, other: Any) -> bool:
    """Whether metadata are equal; if values cannot be compared, such as arrays, whether their bytes are."""
    with suppress(Exception):
        return bool(one == other)
    with suppress(Exception):  # as of locks
        return pickle.dumps(one) == pickle.dumps(other)
    return False
