"""A segmented document as terminal lines: sentences, the score of each gap, and the cuts."""

from collections.abc import Iterator

from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.types import Document
from precise_rag.viz.terminal import visible_line

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR = 8
_DIM, _BOLD, _CUT, _WEAK, _OFF = "\033[2m", "\033[1m", "\033[31m", "\033[33m", "\033[0m"


def segmentation_lines(
    document: Document, found: Segmentation, options: SegmenterOptions, *, color: bool = False
) -> Iterator[str]:
    """Yield one line per sentence with the score of the gap after it, and a heading per chunk.

    found: of `Segmenter.explain`. options: of the segmenter.
    Control characters of the document are written as escapes.
    color: use ANSI colours. Scores below the threshold are coloured even where a limit prevents the cut.
    """

    def paint(text: str, style: str) -> str:
        return f"{style}{text}{_OFF}" if color else text

    settings = (
        f"threshold {options.threshold}, max_tokens {options.max_tokens}, paragraphs {options.paragraphs}"
    )
    found_in = f"{len(found.spans)} sentences, {len(found.lengths)} chunks ({settings})"
    yield paint(f"{visible_line(document.id)}: {found_in}", _BOLD)
    cuts = set(found.cuts.tolist())
    chunk = -1
    for row, (start, end) in enumerate(found.spans.tolist()):
        if row == 0 or row - 1 in cuts:
            chunk += 1
            yield ""
            yield paint(f"── chunk {chunk + 1} · {found.lengths[chunk]} tokens ──", _BOLD)
        text = visible_line(" ".join(document.text[start:end].split()))
        if row == len(found.spans) - 1:
            yield f"{'':{_BAR + 7}}{text}"
            continue
        score = float(found.scores[row])
        style = _CUT if row in cuts else _WEAK if score < options.threshold else _DIM
        mark = "✂" if row in cuts else " "
        yield f"{paint(f'{_bar(score)} {score:.2f} {mark}', style)}{text}"


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    full, rest = divmod(eighths, 8)
    return f"{'█' * full}{_BLOCKS[rest] if rest else ''}".ljust(_BAR)
