"""Stretches of consecutive sentences around the sentences that were found."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise, starmap

from precise_rag.protocols import SentenceSplitter
from precise_rag.sentences.splitters import default_sentence_splitter, split_structured
from precise_rag.sentences.words import has_words, trimmed
from precise_rag.structure import heading_title, read_structure
from precise_rag.structure.marks import FIELD, TIME, ends_sentence
from precise_rag.structure.running import without_page_lines
from precise_rag.titles import below, titles_above, titles_at
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Stretch


def split_into_sentences(piece: Candidate, splitter: SentenceSplitter | None = None) -> Stretch:
    """Split a candidate of any length into its sentences, without the white space and the rules around them.

    splitter: splits the text; default: `load_sentence_splitter()`.
    The sentences have the piece's score, scale, scores, passage and metadata. Headings in the piece are above
    the sentences that follow them, below what is above the piece. Offsets count from `piece.start`, also if
    the piece's text is not exactly that of a document. The tokens are estimated.
    """
    structure = read_structure(piece.text)
    spans = split_structured(piece.text, structure, splitter or default_sentence_splitter())
    kept = [trimmed(piece.text, *span) for span in without_page_lines(piece.text, spans)]
    kept = [span for span in kept if has_words(piece.text[slice(*span)])]
    places = [start for start, _ in kept]
    titles = titles_at(titles_above(piece), piece.metadata, piece.text, structure, places)
    sentences = [
        replace(
            piece,
            start=piece.start + start,
            end=piece.start + end,
            text=piece.text[start:end],
            n_tokens=estimate_tokens(piece.text[start:end]),
            above=above,
        )
        for (start, end), above in zip(kept, titles, strict=True)
    ]
    if not sentences:
        return Stretch("", ())
    first, last = sentences[0].start - piece.start, sentences[-1].end - piece.start
    return Stretch(piece.text[first:last], tuple(sentences))


def by_section(stretch: Stretch) -> Iterator[tuple[int, Stretch]]:
    """Yield the parts of a stretch, each from a heading or a record on, with the row of its first sentence.

    A heading is a sentence whose words are the last title above the next sentence (`Candidate.above`). For
    records see `records`.
    """
    sentences, first = stretch.sentences, 0
    begins = {row for row, pair in enumerate(pairwise(sentences)) if row and _stands_above(*pair)}
    begins.update(record.start for record in records(stretch) if record.start)
    for end in (*sorted(begins), len(sentences)):
        part = sentences[first:end]
        start, stop = part[0].start - sentences[0].start, part[-1].end - sentences[0].start
        yield first, Stretch(stretch.text[start:stop], part)
        first = end


def records(stretch: Stretch) -> list[range]:
    """Return the rows of each record: lines of up to 120 characters, with a field or without an end mark.

    It has three fields of different names, "Name: Ann", or there is a blank line between it and another one.
    And the rows of each entry of a log that has lines below the one with a time, such as those of an error.
    """
    sentences, origin = stretch.sentences, stretch.sentences[0].start
    names, is_line = [], []
    for text in (one.text for one in sentences):
        name = FIELD.match(text)
        names.append(name[0] if name else "")
        is_line.append(len(text) <= 120 and text[-1] not in ",;{}[" and bool(name or not ends_sentence(text)))
    gaps = [stretch.text[one.end - origin : two.start - origin] for one, two in pairwise(sentences)]
    joined = [gap.count("\n") == 1 and all(is_line[row : row + 2]) for row, gap in enumerate(gaps)]
    breaks = (row for row, is_joined in enumerate(joined, 1) if not is_joined)
    runs = [*starmap(range, pairwise((0, *breaks, len(sentences))))]
    beside = [two for two in pairwise(runs) if min(map(len, two)) > 1 and gaps[two[0][-1]].count("\n") > 1]
    alone = [run for run in runs if 2 < len(run) == len({*names[run.start : run.stop]} - {""})]
    is_timed = [TIME.match(one.text) is not None for one in sentences]
    begins = (row for row, gap in enumerate(gaps, 1) if is_timed[row] or gap.count("\n") > 1)
    entries = starmap(range, pairwise((0, *begins, len(sentences))))
    of_log = (run for run in entries if sum(is_timed) > 2 and is_timed[run.start] and len(run) > 1)
    return sorted({*chain.from_iterable(beside), *alone, *of_log}, key=lambda run: run.start)


def begins_with_heading(stretch: Stretch) -> bool:
    """Check whether the first sentence is a heading, and another one follows."""
    return len(stretch.sentences) > 1 and _stands_above(*stretch.sentences[:2])


def _stands_above(sentence: Candidate, following: Candidate) -> bool:
    above = following.above[-1:]
    return bool(above) and above == below((), heading_title(sentence.text))
