"""How many chunks end where a reader would not end them, over all development documents.

    python -m benchmarks.segmentation.ends --data DIR [--limits 1024,256] [--files train_docs_peps,…]

Counted for each file, over all chunks of `small`: those that end in a heading of the document (known from the
record, not read from the text), those that end in a line with a colon, both without the last chunk of a
document, and those shorter than a sixteenth of the limit, in documents of more than one. Paragraphs and
headings are written with blank lines between them, and records with headings also as Markdown,
reStructuredText and HTML. By meaning: the share of cuts whose score is under the threshold or that are before
a heading.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import record
from precise_rag import Segmenter
from precise_rag.documents import read_json_lines

FORMATS = ("plain", "markdown", "restructured", "html")
COLUMNS = ("file", "format", "limit", "documents", "chunks", "heading", "colon", "crumb", "by meaning")
_TAGS = re.compile(r"(?:</?\w+>\s*)+$")


def sections_of(entry: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The headings of a record, "" for none, with their paragraphs."""
    if "sections" not in entry:
        return [("", [entry["text"]])]
    return [(str(part.get("heading") or "").strip(), part["paragraphs"]) for part in entry["sections"]]


def written(sections: list[tuple[str, list[str]]], form: str) -> str:
    """The text of a document in a format."""
    parts: list[str] = []
    for heading, paragraphs in sections:
        if heading and form == "markdown":
            parts.append(f"## {heading}")
        elif heading and form == "restructured":
            parts.append(f"{heading}\n{'=' * max(4, len(heading))}")
        elif heading and form == "html":
            parts.append(f"<h2>{escape(heading)}</h2>")
        elif heading:
            parts.append(heading)
        parts += [f"<p>{escape(part)}</p>" if form == "html" else part for part in paragraphs]
    return "\n\n".join(parts)


def texts(file: Path) -> Iterator[tuple[str, str, set[str]]]:
    """The format, text and headings of each document."""
    for _, _, entry in read_json_lines(file):
        sections = sections_of(entry)
        headings = {" ".join(heading.split()) for heading, _ in sections if heading}
        for form in FORMATS if headings else FORMATS[:1]:
            yield form, written(sections, form), headings


def faults(text: str, headings: set[str], segmenter: Segmenter) -> Counter[str]:
    """Count the chunks of a text and the bad ends among them."""
    found: Counter[str] = Counter(documents=1)
    explained = segmenter.explain(text)
    edges = [0, *(explained.cuts + 1).tolist(), len(explained.spans)]
    for number, (first, last) in enumerate(pairwise(edges)):
        found["chunks"] += 1
        short = explained.lengths[number] < segmenter.options.max_tokens // 16
        found["crumb"] += bool(short and len(edges) > 2)
        if number + 2 < len(edges):
            end = text[explained.spans[first, 0] : explained.spans[last - 1, 1]].rstrip()
            lines = [line for line in _TAGS.sub("", end).splitlines() if set(line.strip()) - set("=")]
            words = " ".join(re.sub(r"<h2>|^#+ ", "", lines[-1]).split()) if lines else ""
            found["heading"] += words in headings
            found["colon"] += words.rstrip("*_ ").endswith((":", "："))
    found["cuts"] = len(explained.cuts)
    found["by meaning"] = sum(reason in ("topic", "heading") for reason in explained.reasons)
    return found


def row(file: str, form: str, limit: int, counts: Counter[str]) -> dict[str, Any]:
    figures = {name: counts[name] for name in ("documents", "chunks", "heading", "colon", "crumb")}
    share = counts["by meaning"] / counts["cuts"] if counts["cuts"] else float("nan")
    return {"file": file, "format": form, "limit": limit, **figures, "by meaning": share}


def table(rows: list[dict[str, Any]]) -> str:
    lines = [f"| {' | '.join(COLUMNS)} |", f"|---|---|{'---:|' * (len(COLUMNS) - 2)}"]
    for found in rows:
        share = found["by meaning"]
        cells = [str(found[name]) for name in COLUMNS[:3]] + [f"{found[name]:,}" for name in COLUMNS[3:-1]]
        lines.append(f"| {' | '.join([*cells, '–' if share != share else f'{share:.2f}'])} |")
    return "\n".join(lines)


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--limits", default="1024,256", help="max_tokens, comma-separated (%(default)s)")
    parser.add_argument("--files", help="names of files, comma-separated (default: all dev_qa_docs_*)")
    args = parser.parse_args()
    names = (
        args.files.split(",") if args.files else sorted(p.name for p in Path(args.data).glob("dev_qa_docs_*"))
    )
    segmenters = {
        int(limit): Segmenter.from_pretrained("small", max_tokens=int(limit))
        for limit in args.limits.split(",")
    }
    rows: list[dict[str, Any]] = []
    totals: dict[int, Counter[str]] = {limit: Counter() for limit in segmenters}
    for name in names:
        file = Path(args.data) / f"{name.split('.')[0]}.jsonl.gz"
        counts: dict[tuple[str, int], Counter[str]] = {}
        for form, text, headings in texts(file):
            for limit, segmenter in segmenters.items():
                counts.setdefault((form, limit), Counter()).update(faults(text, headings, segmenter))
        for (form, limit), found in counts.items():
            rows.append(row(file.name.split(".")[0], form, limit, found))
            totals[limit].update(found)
            print(table([rows[-1]]).splitlines()[-1], flush=True)
    rows = [row("all", "all", limit, found) for limit, found in totals.items()] + rows
    body = f"# Ends of chunks\n\n{(__doc__ or '').split(chr(10) * 2)[2]}\n\n{table(rows)}"
    record.save("segmentation", "ends", record.made(__spec__.name, args), body, {"rows": rows})


if __name__ == "__main__":
    main()
