"""A segmented document as terminal lines: sentences, the score of each gap, and the cuts."""

from collections.abc import Iterator

from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.structure import Block
from precise_rag.types import Document
from precise_rag.viz.cut_reasons import REASONS
from precise_rag.viz.terminal import visible, visible_line

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR = 8
_DIM, _BOLD, _CUT, _WEAK, _OFF = "\033[2m", "\033[1m", "\033[31m", "\033[33m", "\033[0m"


def segmentation_lines(
    document: Document, segmentation: Segmentation, options: SegmenterOptions, *, color: bool = False
) -> Iterator[str]:
    """Yield one line per sentence with the score of the gap after it, and a heading per chunk.

    segmentation: of `Segmenter.explain`. options: of the segmenter.
    Control characters of the document are written as escapes.
    color: use ANSI colours. Scores below the threshold are coloured even where a limit prevents the cut.
    """

    def paint(text: str, style: str) -> str:
        return f"{style}{text}{_OFF}" if color else text

    settings = (
        f"threshold {options.threshold}, max_tokens {options.max_tokens}, paragraphs {options.paragraphs}"
    )
    sizes = f"{len(segmentation.spans)} sentences, {len(segmentation.lengths)} chunks"
    summary = f"{sizes}, read as {segmentation.structure.format} ({settings})"
    yield paint(f"{visible_line(document.id)}: {summary}", _BOLD)
    cuts = set(segmentation.cuts.tolist())
    chunk = -1
    for row, (start, end) in enumerate(segmentation.spans.tolist()):
        if row == 0 or row - 1 in cuts:
            chunk += 1
            why = f" · {REASONS[segmentation.reasons[chunk - 1]]}" if chunk else ""
            yield ""
            yield paint(f"── chunk {chunk + 1} · {segmentation.lengths[chunk]} tokens{why} ──", _BOLD)
        text = _text(document.text[start:end], segmentation.structure.blocks[int(segmentation.blocks[row])])
        if row == len(segmentation.spans) - 1:
            yield f"{'':{_BAR + 7}}{text}"
            continue
        score = float(segmentation.scores[row])
        style = _CUT if row in cuts else _WEAK if score < options.threshold else _DIM
        mark = "✂" if row in cuts else " "
        yield f"{paint(f'{_bar(score)} {score:.2f} {mark}', style)}{text}"


def _text(sentence: str, block: Block) -> str:
    """A sentence with the kind of its block; code and tables keep their lines."""
    kind = "" if block.kind == "paragraph" else f"[{block.kind}{f' {block.level}' if block.level else ''}] "
    if block.kind in ("code", "table"):
        return f"{kind}\n{visible(sentence.rstrip())}"
    return kind + visible_line(" ".join(sentence.split()))


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    full, rest = divmod(eighths, 8)
    return f"{'█' * full}{_BLOCKS[rest] if rest else ''}".ljust(_BAR)
