"""Sentences and cuts of `small` in languages other than English.

    python -m benchmarks.segmentation.languages --data DIR [--max-tokens 256]

XQuAD: the same paragraphs in every language. As many: those with as many sentences as in English, in percent;
off by: the mean difference. Simple: the same for a rule that ends a sentence after each mark that can end
one. Multilingual: translated documentation, a part of which the models know, without a text to compare with.
After a mark: sentences within a paragraph that end in a mark that can end one, in percent. Cuts: of all
documents into chunks of --max-tokens; at an end: those at the end of a paragraph, in percent; by chance: the
share of all gaps between sentences that are.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from precise_rag import Segmenter, split_sentences
from precise_rag.documents import read_documents
from precise_rag.types import Document

LANGUAGES = {
    "en": "English",
    "de": "German",
    "es": "Spanish",
    "ru": "Russian",
    "ar": "Arabic",
    "zh": "Chinese",
}
FILES = {"XQuAD": "dev_qa_docs_xquad.jsonl.gz", "multilingual": "train_docs_multilingual.jsonl.gz"}
COLUMNS = (
    "file", "language", "paragraphs", "sentences", "as many", "off by", "simple: as many", "off by ",
    "after a mark", "cuts", "at an end", "by chance",
)  # fmt: skip
_ENDED = re.compile(r"[.!?:…。！？；：؟۔][\"'”’»›」』）)\]*_`]*\s*\Z")
_SIMPLE_END = re.compile(r"[.!?؟۔…](?=\s)|[。！？]")


def counts(paragraphs: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """(n,) sentences of n paragraphs, by the library and by the simple rule."""
    own = [len(split_sentences(text)) for text in paragraphs]
    simple = [len(_SIMPLE_END.findall(text.rstrip() + "\n")) for text in paragraphs]
    return np.array(own), np.maximum(simple, 1)


def share_ended(paragraphs: Sequence[str]) -> float:
    """Share of the sentences within paragraphs, without each last one, that end in a mark; in percent."""
    ended = [
        _ENDED.search(text[s:e]) is not None for text in paragraphs for s, e in split_sentences(text)[:-1]
    ]
    return 100 * float(np.mean(ended))


def cuts(documents: Sequence[Document], segmenter: Segmenter) -> tuple[int, float, float]:
    """Cuts, and the shares of the cuts and of all gaps that are at the end of a paragraph; in percent."""
    cut, gaps = [], []
    for document in documents:
        found = segmenter.explain(document)
        ends = np.diff(found.paragraphs) > 0
        gaps += ends.tolist()
        cut += ends[found.cuts].tolist()
    return len(cut), 100 * float(np.mean(cut)), 100 * float(np.mean(gaps))


def rows(data: Path, max_tokens: int) -> list[dict[str, Any]]:
    """A row for each file and language."""
    segmenter = Segmenter.from_pretrained("small", max_tokens=max_tokens)
    found = []
    for name, file in FILES.items():
        pool: dict[str, list[Document]] = {}
        for document in read_documents(data / file):
            pool.setdefault(str(document.metadata.get("lang", "en")).partition("-")[0], []).append(document)
        expected: tuple[np.ndarray, np.ndarray] | None = None
        for code, language in LANGUAGES.items():
            documents = sorted(pool.get(code, ()), key=lambda document: document.id)
            if not documents:
                continue
            paragraphs = [p for document in documents for p in document.text.split("\n\n") if p.strip()]
            own, simple = counts(paragraphs)
            n_cuts, at_end, chance = cuts(documents, segmenter)
            row = {
                "file": name,
                "language": language,
                "paragraphs": len(paragraphs),
                "sentences": int(own.sum()),
            }
            if name == "XQuAD":
                expected = expected or (own, simple)
                for (many, off), now, english in zip(
                    (("as many", "off by"), ("simple: as many", "off by ")),
                    (own, simple),
                    expected,
                    strict=True,
                ):
                    row |= {
                        many: 100 * float(np.mean(now == english)),
                        off: float(np.abs(now - english).mean()),
                    }
            row |= {"after a mark": share_ended(paragraphs), "cuts": n_cuts, "at an end": at_end}
            found.append({**row, "by chance": chance})
            print(found[-1], flush=True)
    return found


def table(found: Sequence[dict[str, Any]]) -> str:
    lines = [f"| {' | '.join(COLUMNS)} |", f"|---|---|{'---:|' * (len(COLUMNS) - 2)}"]
    for row in found:
        cells = [row.get(name, "") for name in COLUMNS]
        shown = [
            f"{cell:.{2 if name.startswith('off') else 0}f}" if isinstance(cell, float) else f"{cell}"
            for name, cell in zip(COLUMNS, cells, strict=True)
        ]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--max-tokens", type=int, default=256, help="of a chunk (%(default)s)")
    args = parser.parse_args()
    found = rows(Path(args.data), args.max_tokens)
    body = f"# Languages\n\n{(__doc__ or '').split(chr(10) * 2)[2]}\n\n{table(found)}"
    record.save("segmentation", "languages", record.made(__spec__.name, args), body, {"rows": found})


if __name__ == "__main__":
    main()
