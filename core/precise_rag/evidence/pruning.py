"""A long text, such as the result of a tool, cut down to what answers a question."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from typing import Any, NamedTuple

from precise_rag.checks import check_number, check_text
from precise_rag.encoders.local import count_packaged_tokens
from precise_rag.evidence.extractor import EvidenceExtractor
from precise_rag.evidence.texts import FoundTexts
from precise_rag.evidence.units import is_prose, parts_of, units_of
from precise_rag.excerpts import Form, excerpts_of, within
from precise_rag.protocols import Reranker
from precise_rag.rerank import calibrated, load_reranker, rerank
from precise_rag.selection import ProbabilitySelector
from precise_rag.sentences.trimming import trimmed
from precise_rag.stems import read_words
from precise_rag.structure.blocks import shared
from precise_rag.structure.marks import indent_of
from precise_rag.structure.tables import FIRST_CELL
from precise_rag.titles import joined_titles, new_sections, titles_at_end
from precise_rag.tokens import Counts, CountTokens, candidate_tokens, counting, estimate_tokens
from precise_rag.types import Candidate, Decision, Excerpt, Selection, Span, Stretch, best_first, check_query

_LONGEST_QUESTION = 2_000
_SIGN = re.compile(r"""(?:["']([^"'\n]{1,80})["']\s?:\s{0,9})?([{\[])|[}\]]|"(?:[^"\\\n]|\\.){0,300}+\"""")
"""What opens a value with others in it, after its key, or closes one; or a string, which may hold signs."""
_WORTH = ProbabilitySelector(share_of_best=0.02, min_score=0.001, enough_tokens=None)
"""Uses the limit that the caller gave while anything is somewhat likely."""
_LONG_SHARE = 0.25
"""The share of the limit up to which a unit is sent whole or not at all, unless it is the likeliest."""
_NEARLY = 0.5
"""The share of the likeliest unit's probability above which another is not much less likely."""
_STRING_OR_LIST = re.compile(r'"(?:[^"\\]++|\\.)*+"|\[\s*', re.DOTALL)
_COMMA = re.compile(r"\s*,?\s*")
_DECODER = json.JSONDecoder(strict=False)


class Pruned(NamedTuple):
    """What is left of a text.

    text: the excerpts in their order. "[… 120]" stands for what is left out from character 120 of the
        whole text on; "[… 120: Care > Oil]" also names the headings above what follows that the mark
        before does not, or the last of many, and the head of a table. A text that fits is whole. In JSON,
        whole elements of the outermost lists are left out, and the mark is an element in their place;
        without such lists, or if the best element does not fit, JSON is cut like any other text. Of a
        record or sentence that is likeliest but does not fit, the best parts are kept, below the keys
        above them, and nothing that is much less likely.
    excerpts: the slices of the whole text that are kept, in its order; none if the text is whole.
    n_tokens, n_tokens_before: tokens of `text`, and of the whole text.
    """

    text: str
    excerpts: tuple[Excerpt, ...]
    n_tokens: int
    n_tokens_before: int


def prune(
    text: str,
    question: str,
    max_tokens: int = 400,
    *,
    reranker: Any = "default",
    count_tokens: CountTokens | None = None,
) -> Pruned:
    """Cut a long text, such as a page or a tool's result, down to what answers a question.

    text: of any kind and length. question: not blank; of a long one the last 2,000 characters are read.
    max_tokens: most tokens of the result, which is never longer; at least 32. What is less than a fiftieth as
        likely as the best is left out before that, see `ProbabilitySelector`.
    reranker: scores the sentences; anything that `load_reranker` takes.
    count_tokens: counts the tokens of a text, or of several; default: those of the default encoder.
    Raises InputError for other arguments.
    """
    check_text("text", text)
    question = check_query(question).strip()[-_LONGEST_QUESTION:]
    check_number("max_tokens", max_tokens, least=32, whole=True)
    count = counting(count_tokens or count_packaged_tokens)
    before = int(count([text])[0])
    if before <= max_tokens:
        return Pruned(text, (), before, before)
    cut = text, question, max_tokens, calibrated(load_reranker(reranker)), count
    shown, excerpts = _cut_json(*cut) or _cut(*cut)
    return Pruned(shown, excerpts, int(count([shown])[0]), before)


def _cut(
    text: str, question: str, max_tokens: int, reranker: Reranker, count: Counts
) -> tuple[str, tuple[Excerpt, ...]]:
    """The evidence in a text, with a mark for each hole that has visible characters."""
    mark = estimate_tokens(_mark(len(text)))
    start, end = trimmed(text, 0, len(text))
    whole = Candidate("text", start, end, text[start:end], 0.0, "rank")
    found = FoundTexts(question, [whole], partial(units_of, max_tokens=max_tokens, count=count))

    def shown(excerpts: Sequence[Excerpt]) -> str:
        """The excerpts, below shorter headings if there is one sentence that does not fit otherwise."""
        is_one = sum(len(excerpt.sentences) for excerpt in excerpts) == 1
        lengths = (max_tokens, max_tokens // 4, 0) if is_one else (max_tokens,)
        forms = [_with_holes(text, excerpts, longest) for longest in lengths]
        return next((form for form in forms if count([form])[0] <= max_tokens), forms[0])

    marked = Form(lambda excerpts: [shown(excerpts)], lambda piece: mark, count)
    selection = EvidenceExtractor(reranker, _WORTH).select(question, found)
    fits = within(selection, max_tokens, form=marked)
    if unit := _best_left_out(selection, fits, max_tokens):
        fits = within(_with_parts_of(unit, selection, question, reranker), max_tokens, form=marked)
    left = shown(excerpts := excerpts_of(fits, piece_tokens=marked.piece_tokens))
    return (left, excerpts) if count([left])[0] <= max_tokens else ("", ())


def _best_left_out(selection: Selection, fits: Selection, max_tokens: int) -> Candidate | None:
    """The likeliest unit that does not fit, if it is long or the best, and not much less likely than that."""
    ids = {one.id for one in fits.kept}
    one = next((one for one in selection.kept if one.id not in ids), None)
    if one is None or one.score < _NEARLY * selection.kept[0].score:
        return None
    return one if one == selection.kept[0] or candidate_tokens(one) > _LONG_SHARE * max_tokens else None


def _with_parts_of(unit: Candidate, selection: Selection, question: str, reranker: Reranker) -> Selection:
    """A selection with the parts of a unit in its place; what is much less likely is dropped.

    After the best part, of prose those nearest to it; of others, those with words of the question that it
    lacks, or, if there are no keys above any part, the first one, which may name the unit. Then the others.
    """
    texts = FoundTexts(question, [unit], parts_of)
    named = [
        replace(part, above=(*unit.above, *_path(unit.text, part.start - unit.start)))
        for part in texts.sentences.kept
    ]
    parts = best_first(rerank(question, named, reranker, texts))
    asked = _words(question) - _words(parts[0].text)
    best, has_paths = parts[0], any(part.above != unit.above for part in parts)
    if is_prose(unit.text):
        parts.sort(key=lambda part: abs(part.start - best.start))
    elif has_paths:
        parts[1:] = sorted(parts[1:], key=lambda part: asked.isdisjoint(_words(part.text)))
    else:
        parts[1:] = sorted(parts[1:], key=lambda part: part.start > unit.start)
    reason = f"a part of {unit.id}, which does not fit"
    ranked = [(replace(part, score=unit.score), True, reason) for part in parts]
    verdicts = chain.from_iterable(
        ranked if one == unit else [(one, is_kept and one.score >= _NEARLY * unit.score, why)]
        for _, one, is_kept, why in selection.decisions
    )
    cut = {unit.id: texts.stretches[0].sentences}
    stretches = []
    for one in selection.stretches:
        rows = tuple(chain.from_iterable(cut.get(row.id, (row,)) for row in one.sentences))
        stretches.append(Stretch(one.text[rows[0].start - one.sentences[0].start :], rows))
    return replace(Selection.of(verdicts), stretches=tuple(stretches))


def _words(text: str) -> set[str]:
    """The stems of a text, also of the words that are parts of a key."""
    return {*read_words(text.replace("_", " ")).stems}


def _path(text: str, place: int) -> list[str]:
    """The keys, and the beginnings of blocks by their indents, around a place in a record or in code."""
    around: list[tuple[int, str]] = []
    for line in f"{text[:place]}.".split("\n") if "\n" in text else ():
        while around and around[-1][0] >= indent_of(line):
            around.pop()
        around.append((indent_of(line), line.strip() if line.rstrip()[-1:] in (*":{[(",) else ""))
    keys = [line.strip("\"' :{[(-") for _, line in around[:-1]]
    keys += [cell[1]] if (cell := FIRST_CELL.match(text)) and cell.end(1) <= place else []
    for sign in _SIGN.finditer(text, 0, place) if "\n" not in text else ():
        if sign[2]:
            keys.append(sign[1] or "")
        elif sign[0] in "]}":
            del keys[-1:]
    return [*filter(None, keys)]


def _with_holes(text: str, excerpts: Sequence[Excerpt], longest: int) -> str:
    """Some slices of a text, with a mark for each hole that can be seen. longest: characters of a heading."""
    parts, end, before = [], 0, tuple[str, ...]()
    for excerpt, titles in zip(excerpts, new_sections(excerpts), strict=True):
        n_same = min(len(shared(before, titles)), len(titles) - 1)
        paths = (joined_titles(titles[first:]) for first in range(n_same, len(titles)))
        table = (*(title[: longest // 3] for title in titles[-2:-1]), *titles[-1:])
        title = next(
            (path for path in paths if 4 * len(path) <= longest), joined_titles(table)[: 2 * longest]
        )
        parts += [_hole(text, end, excerpt.start, title), text[excerpt.start : excerpt.end].strip("\r\n")]
        end, before = excerpt.end, titles_at_end(excerpt)
    parts.append(_hole(text, end, len(text)))
    return "\n".join(part for part in parts if part)


def _cut_json(
    text: str, question: str, max_tokens: int, reranker: Reranker, count: Counts
) -> tuple[str, tuple[Excerpt, ...]] | None:
    """The best elements of the outermost lists that fit; None without lists, or if the best is too long."""
    lists = _outermost_lists(text)
    if not any(lists):
        return None
    frame, mark = map(int, count([_with_marks(text, lists, ()), f', "{_mark(len(text))}"']))
    if frame >= max_tokens:
        return None
    spans = [*chain(*lists)]
    sizes = (count([text[start:end] for start, end in spans]) + mark).tolist()
    elements = [_element(text, span, size) for span, size in zip(spans, sizes, strict=True)]
    ranked = rerank(question, elements, reranker)
    selector = replace(_WORTH, max_tokens=max_tokens - frame)
    best = selector.select(ranked, query=question).decisions
    kept = [_excerpt(text, one) for one in best if one.kept] if best[0].kept else []
    while kept:
        shown = _with_marks(text, lists, {Span(one.start, one.end) for one in kept})
        if count([shown])[0] <= max_tokens:
            return shown, tuple(sorted(kept, key=lambda one: one.start))
        kept.pop()
    return None


def _element(text: str, span: Span, n_tokens: int) -> Candidate:
    """An element of JSON without escapes. n_tokens: with what is written between it and the next one."""
    words = json.dumps(json.loads(text[span.start : span.end], strict=False), ensure_ascii=False)
    return Candidate("text", *span, words, 0.0, "rank", n_tokens=n_tokens)


def _excerpt(text: str, decision: Decision) -> Excerpt:
    start, end, score = decision.candidate.start, decision.candidate.end, decision.candidate.score
    return Excerpt("text", start, end, text[start:end], score, "probability", sentences=(decision,))


def _outermost_lists(text: str) -> list[list[Span]]:
    """The places of the elements of each outermost list of a JSON text; none of another text."""
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return []
    lists: list[list[Span]] = []
    place = 0
    while found := _STRING_OR_LIST.search(text, place):
        place = found.end()
        if found[0][0] == "[":
            elements = []
            while text[place] != "]":
                _, end = _DECODER.raw_decode(text, place)
                elements.append(Span(place, end))
                place = _COMMA.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing, too
            lists.append(elements)
    return lists


def _with_marks(text: str, lists: Sequence[Sequence[Span]], kept: Collection[Span]) -> str:
    """A JSON text with a mark in place of each run of elements that are not kept."""
    parts, end = [], 0
    for elements in lists:
        for is_kept, group in groupby(elements, lambda element: element in kept):
            run = list(group)
            if not is_kept:
                parts += [text[end : run[0].start], f'"{_mark(run[0].start)}"']
                end = run[-1].end
    return "".join(parts) + text[end:]


def _hole(text: str, start: int, end: int, title: str = "") -> str:
    return _mark(start, title) if text[start:end].strip() else ""


def _mark(start: int, title: str = "") -> str:
    return f"[… {start}: {title}]" if title else f"[… {start}]"
