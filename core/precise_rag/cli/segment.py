"""`precise segment PATH…`: cut documents into chunks, and say why."""

import argparse
import sys
from collections.abc import Iterable, Iterator

from precise_rag._data import packaged_toml
from precise_rag.cli.output import barred, is_terminal, print_json, show, show_problems
from precise_rag.documents import read_documents
from precise_rag.errors import InputError
from precise_rag.redaction import visible_line
from precise_rag.segmentation import Segmentation, Segmenter, SegmenterOptions
from precise_rag.structure import Block
from precise_rag.titles import HEADER_PATH
from precise_rag.types import Chunk, Document

_REASONS = packaged_toml("cli/cut_reasons.toml")
_BAR = 8


def run(args: argparse.Namespace) -> int:
    """Print the chunks of each document, in order."""
    named = {"max_tokens": args.max_tokens, "threshold": args.threshold}
    given = {name: value for name, value in named.items() if value is not None}
    segmenter = Segmenter.from_pretrained(args.model, **given)
    problems: list[InputError] = []
    documents = read_documents(*args.paths, exclude=args.exclude, on_error=problems.append)
    filled = _filled(documents, problems)
    if args.explain:
        for document in filled:
            for line in explained_lines(document, segmenter.explain(document), segmenter.options):
                show(line)
        return show_problems(problems)
    show_progress = is_terminal(sys.stderr) and not is_terminal(sys.stdout)
    for chunks in segmenter.segment_many(filled, show_progress=show_progress):
        for number, chunk in enumerate(chunks, start=1):
            if args.json:
                print_json(_record(chunk))
            else:
                place = f"{chunk.start}–{chunk.end}"
                show(f"── {visible_line(chunk.doc_id)} · chunk {number} · {place} · {chunk.n_tokens} tokens")
                show(barred(chunk.text.strip()))
    return show_problems(problems)


def _filled(documents: Iterable[Document], problems: list[InputError]) -> Iterator[Document]:
    """The documents that have words; the others are problems."""
    for document in documents:
        if document.text.strip():
            yield document
        else:
            problems.append(InputError(f"{document.id}: the document is empty, nothing to segment"))


def _record(chunk: Chunk) -> dict[str, object]:
    path = {HEADER_PATH: chunk.metadata[HEADER_PATH]} if HEADER_PATH in chunk.metadata else {}
    place = {name: getattr(chunk, name) for name in ("doc_id", "start", "end", "n_tokens")}
    return {**place, **path, "text": chunk.text}


def explained_lines(document: Document, found: Segmentation, options: SegmenterOptions) -> Iterator[str]:
    """Yield a heading per chunk, and a line per sentence with the score of the gap after it."""
    used = f"threshold {options.threshold}, max_tokens {options.max_tokens}, paragraphs {options.paragraphs}"
    sizes = f"{len(found.spans)} sentences, {len(found.lengths)} chunks"
    yield f"{visible_line(document.id)}: {sizes}, read as {found.structure.format} ({used})"
    cuts = set(found.cuts.tolist())
    chunk = -1
    for row, (start, end) in enumerate(found.spans.tolist()):
        if row == 0 or row - 1 in cuts:
            chunk += 1
            why = f" · {_REASONS[found.reasons[chunk - 1]]}" if chunk else ""
            yield ""
            yield f"── chunk {chunk + 1} · {found.lengths[chunk]} tokens{why} ──"
        text = _text(document.text[start:end], found.structure.blocks[int(found.blocks[row])])
        if row == len(found.spans) - 1:
            yield f"{'':{_BAR + 7}}{text}"
            continue
        score = float(found.scores[row])
        yield f"{'█' * round(score * _BAR):<{_BAR}} {score:.2f} {'✂' if row in cuts else ' '}{text}"


def _text(sentence: str, block: Block) -> str:
    """A sentence with the kind of its block; code and tables keep their lines."""
    kind = "" if block.kind == "paragraph" else f"[{block.kind}{f' {block.level}' if block.level else ''}] "
    if block.kind in ("code", "table"):
        return f"{kind}\n{barred(sentence.rstrip())}"
    return kind + " ".join(sentence.split())
