"""Stretches of consecutive sentences around the sentences that were found."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from precise_rag.evidence.records import records
from precise_rag.sentences.splitters import load_sentence_splitter, split_structured
from precise_rag.sentences.trimming import has_words, trimmed
from precise_rag.structure import Structure, heading_title, read_structure
from precise_rag.structure.running import without_page_lines
from precise_rag.titles import below, titles_above, titles_at
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Span, Stretch

Split = Callable[[str], list[Span]]
"""Splits a text into spans that cover it."""


def split_into_sentences(
    piece: Candidate, split: Split | None = None, whole: tuple[Candidate, Structure] | None = None
) -> Stretch:
    """Split a candidate of any length into its sentences, without the white space and the rules around them.

    split: splits the text; default: `load_sentence_splitter()`.
    whole: the text around the piece, whose headings count, too, and its structure; default: the piece's.
    The sentences have the piece's score, scale, scores, passage and metadata. Headings in the piece are above
    the sentences that follow them, below what is above the piece. Offsets count from `piece.start`, also if
    the piece's text is not exactly that of a document. The tokens are estimated.
    """
    structure = read_structure(piece.text)
    spans = split(piece.text) if split else split_structured(piece.text, structure, load_sentence_splitter())
    kept = [trimmed(piece.text, *span) for span in without_page_lines(piece.text, spans)]
    kept = [span for span in kept if has_words(piece.text[slice(*span)])]
    around, headings = whole or (piece, structure)
    places = [piece.start - around.start + start for start, _ in kept]
    titles = titles_at(titles_above(around), around.metadata, around.text, headings, places)
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
    begins = {row for row, pair in enumerate(pairwise(sentences)) if row and stands_above(*pair)}
    begins.update(record.start for record in records(stretch) if record.start)
    for end in (*sorted(begins), len(sentences)):
        part = sentences[first:end]
        start, stop = part[0].start - sentences[0].start, part[-1].end - sentences[0].start
        yield first, Stretch(stretch.text[start:stop], part)
        first = end


def stands_above(sentence: Candidate, following: Candidate) -> bool:
    """Check whether a sentence is a heading right above another one."""
    above = following.above[-1:] if following.above != sentence.above else ()
    return bool(above) and above == below((), heading_title(sentence.text))
