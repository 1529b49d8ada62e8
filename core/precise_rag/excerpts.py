"""Excerpts: what is sent of a selection, as slices of the documents that read as the documents do.

Kept sentences that follow each other are one excerpt, whatever white space is between them. A hole between
two of them is filled when its text costs fewer tokens than one more piece would cost, or if it is short: one
sentence of their paragraph, or none, as an anchor below a heading. All text is cut from the stretches that a
stage has read (`Selection.stretches`), so nothing in it is made up. Candidates without a stretch are excerpts
of their own; those that overlap or meet exactly are joined.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from typing import Any, Literal, NamedTuple

from precise_rag.structure.marks import ends_in_colon
from precise_rag.titles import joined_titles, new_sections
from precise_rag.tokens import Counts, candidate_tokens, estimate_token_counts, estimate_tokens
from precise_rag.types import Candidate, Decision, Excerpt, Selection, Stretch

Order = Literal["document", "score"]
"""Order of what is sent. "document": the documents by their best sentence, those that are pages of one file
together in its order, the excerpts of each in the order of its text. "score": every kept candidate by itself,
in the order of the ranks."""
PieceTokens = Callable[[Candidate], int]
"""Counts the tokens that a piece costs where it is written, beside those of its text and its titles."""


def no_piece_tokens(piece: Candidate) -> int:
    """Return 0: a piece costs its text alone."""
    return 0


AsWritten = Callable[[Sequence[Any]], Sequence[str]]
"""Returns what is written for some pieces, in one text or in several."""


class Form(NamedTuple):
    """How excerpts are written where a model reads them, and what that costs.

    texts: see `AsWritten`.
    piece_tokens: estimates what one more piece costs there, see `excerpts_of`.
    counts: counts the tokens of texts.
    """

    texts: AsWritten
    piece_tokens: PieceTokens = no_piece_tokens
    counts: Counts = estimate_token_counts

    def tokens(self, excerpts: Sequence[Excerpt]) -> int:
        """Return the tokens of excerpts in this form."""
        return int(self.counts(self.texts(excerpts)).sum())


PLAIN = Form(lambda pieces: [*(one.text for one in pieces), *map(joined_titles, new_sections(pieces))])
"""The texts alone, with what stands above them once a section."""
LEAST_PIECE_TOKENS = 8
"""Tokens that a piece costs at least: a reader must find out where each one stands."""
_ONE_SENTENCE = 40
"""Tokens of the longest single sentence between two others of its paragraph that is sent with them."""
_LONGEST_HOLE = 1_000
"""Characters of the longest hole to fill: the tokens of a longer one are not counted."""
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def excerpts_of(
    selection: Selection, order: Order = "document", piece_tokens: PieceTokens = no_piece_tokens
) -> tuple[Excerpt, ...]:
    """Return what is sent of a selection.

    order: see `Order`.
    piece_tokens: what one more piece costs where it is written; at least `LEAST_PIECE_TOKENS` are counted.
    """
    kept = [decision for decision in selection.decisions if decision.kept]
    if order == "score":
        return tuple(_alone(decision) for decision in kept)
    by_document: dict[str, list[Decision]] = {}
    for decision in kept:
        by_document.setdefault(decision.candidate.doc_id, []).append(decision)
    pages = {doc_id: _page_of(decisions[0].candidate) for doc_id, decisions in by_document.items()}
    places = {file: place for place, (file, _) in reversed([*enumerate(pages.values())])}
    stretches: dict[str, list[Stretch]] = {}
    for stretch in selection.stretches:
        if stretch.sentences and stretch.sentences[0].doc_id in by_document:
            stretches.setdefault(stretch.sentences[0].doc_id, []).append(stretch)
    return tuple(
        excerpt
        for doc_id in sorted(pages, key=lambda doc_id: (places[pages[doc_id][0]], pages[doc_id][1]))
        for excerpt in _in_document(by_document[doc_id], stretches.get(doc_id, ()), piece_tokens)
    )


def _page_of(piece: Candidate) -> tuple[str, str]:
    """The file of a document that is a page, as loaders make them, and its number; else the document."""
    read = piece.metadata.get
    file, page = read("file_path", read("source")), str(read("page", read("page_label")))
    is_page = isinstance(file, str) and file and page.isdecimal()
    return (file, page.zfill(9)) if is_page else (piece.doc_id, "")


def within(
    selection: Selection, max_tokens: int | None, order: Order = "document", form: Form = PLAIN
) -> Selection:
    """Return a selection whose excerpts fit: of what is kept, the best as many as do, then any that does.

    A lead-in fits with what follows it, or not at all, if these two do.

    max_tokens: most tokens of the excerpts as they are written; None: no limit.
    order: as for `excerpts_of`.
    form: how they are written.
    """
    if max_tokens is None:
        return selection
    kept = selection.kept
    reason = f"with it, more than {max_tokens} tokens would be sent (max_tokens)"

    def only(chosen: Sequence[Candidate]) -> tuple[Selection, int]:
        """Those alone, and how many tokens are left with them."""
        ids = {candidate.id for candidate in chosen}
        fitting = selection.dropping({one.id: reason for one in kept if one.id not in ids})
        return fitting, max_tokens - form.tokens(excerpts_of(fitting, order, form.piece_tokens))

    units = [*_together(selection, lambda several: only(several)[1] >= 0)]
    fits = len(units) - bisect_left(
        range(len(units), 0, -1), True, key=lambda n: only([*chain(*units[:n])])[1] >= 0
    )
    chosen = [*chain(*units[:fits])]
    best, left = only(chosen)
    for unit in units[fits + 1 :]:
        if sum(map(candidate_tokens, unit)) <= left:
            more, then_left = only([*chosen, *unit])
            if then_left >= 0:
                best, left = more, then_left
                chosen += unit
    return best


def _together(selection: Selection, fit: Callable[[Sequence[Candidate]], bool]) -> Iterator[list[Candidate]]:
    """Yield what is kept, best first, each lead-in with what follows it, if these fit."""
    beside = (pair for stretch in selection.stretches for pair in pairwise(stretch.sentences))
    after = {one.id: two.id for one, two in beside if ends_in_colon(one.text)}
    left = {candidate.id: candidate for candidate in selection.kept}
    for key in [*left]:
        unit = [left.pop(key)] if key in left else []
        while unit and (following := left.get(after.get(unit[-1].id, ""))) and fit([*unit, following]):
            unit.append(left.pop(following.id))
        if unit:
            yield unit


def _excerpt(start: int, end: int, text: str, n_tokens: int, decisions: Sequence[Decision]) -> Excerpt:
    """A slice of a document, put together by the decisions on its sentences, in the order of the text."""
    best = min(decisions, key=lambda decision: decision.rank).candidate
    return Excerpt(
        doc_id=best.doc_id,
        start=start,
        end=end,
        text=text,
        score=best.score,
        score_scale=best.score_scale,
        n_tokens=n_tokens,
        passage=best.passage,
        scores=best.scores,
        metadata=best.metadata,
        above=decisions[0].candidate.above,
        sentences=tuple(decisions),
    )


def _in_document(
    decisions: Sequence[Decision], stretches: Iterable[Stretch], piece_tokens: PieceTokens
) -> Iterator[Excerpt]:
    """Yield the excerpts of one document in the order of its text."""
    hole = max(LEAST_PIECE_TOKENS, piece_tokens(decisions[0].candidate))
    wanted = {decision.candidate.id: decision for decision in decisions}
    parts = [part for stretch in stretches for part in _cut(stretch, wanted, hole)]
    cut = {decision.candidate.id for part in parts for decision in part.sentences}
    parts += [_alone(decision) for key, decision in wanted.items() if key not in cut]
    parts.sort(key=lambda part: (part.start, -part.end))
    whole = parts[0]
    for part in parts[1:]:
        joined = _joined(whole, part)
        if joined is None:
            yield whole
        whole = joined or part
    yield whole


def _joined(first: Excerpt, after: Excerpt) -> Excerpt | None:
    """An excerpt with one that begins in it or where it ends; None if the texts do not agree."""
    exact = all(len(part.text) == part.end - part.start for part in (first, after))
    if not exact or after.start > first.end:
        return None
    shared = first.text[after.start - first.start :]
    if not (shared.startswith(after.text) or after.text.startswith(shared)):
        return None
    new = after.text[len(shared) :]
    decisions = {one.candidate.id: one for one in (*first.sentences, *after.sentences)}
    n_tokens = candidate_tokens(first) + (estimate_tokens(new) if shared else candidate_tokens(after))
    return _excerpt(first.start, first.end + len(new), first.text + new, n_tokens, [*decisions.values()])


def _cut(stretch: Stretch, wanted: dict[str, Decision], hole: int) -> Iterator[Excerpt]:
    """Yield the parts of a stretch that hold wanted sentences. hole: most tokens of one to fill."""
    sentences, origin = stretch.sentences, stretch.sentences[0].start
    rows = [row for row, sentence in enumerate(sentences) if sentence.id in wanted]
    number, numbered = 0, []
    for before, row in zip(rows[:1] + rows, rows, strict=False):
        between = stretch.text[sentences[before].end - origin : sentences[row].start - origin]
        is_one = row == before + 1 or (row == before + 2 and not _BLANK_LINE.search(between))
        longest = max(hole, _ONE_SENTENCE) if is_one else hole
        is_hole = row > before + 1 or any(map(str.isalnum, between))
        number += is_hole and (len(between) > _LONGEST_HOLE or estimate_tokens(between) > longest)
        numbered.append((number, row))
    for _, group in groupby(numbered, key=lambda pair: pair[0]):
        run = [row for _, row in group]
        first, last = run[0], run[-1]
        start, end = _with_indent(stretch, first), sentences[last].end
        n_tokens = sum(map(candidate_tokens, sentences[first : last + 1]))
        decisions = [wanted[sentences[row].id] for row in run]
        yield _excerpt(start, end, stretch.text[start - origin : end - origin], n_tokens, decisions)


def _with_indent(stretch: Stretch, row: int) -> int:
    """Return where a sentence begins, or its line if only white space is before it there."""
    start, origin = stretch.sentences[row].start, stretch.sentences[0].start
    before = stretch.text[stretch.sentences[max(row - 1, 0)].end - origin : start - origin]
    line_break = before.rfind("\n")
    return start - (len(before) - line_break - 1) if row and line_break >= 0 else start


def _alone(decision: Decision) -> Excerpt:
    piece = decision.candidate
    decisions = piece.sentences if isinstance(piece, Excerpt) else (decision,)
    return _excerpt(piece.start, piece.end, piece.text, candidate_tokens(piece), decisions)
