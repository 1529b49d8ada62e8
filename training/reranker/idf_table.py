"""The idf table of the packaged reranker, from the paragraphs of the training documents."""

import os
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from benchmarks.harness.datasets import read_lines
from precise_rag.stems import IDF_STEPS, read_words, slot

SIZE = 1 << 18
"""Entries of the table."""

NOT_FREE = ("brown", "wikitext2")
"""Sources whose licence forbids commercial use, or whose rare words are replaced."""

LEAST = 4
"""Paragraphs of a language that a stem must be in; rarer stems share the greatest rarity."""

SMOOTH = 3000
"""Paragraphs added to those of each language, so that words of small languages are not too common."""


def build_idf_table(folder: str | None) -> np.ndarray:
    """Count the table, see `precise_rag.stems`. folder: of the documents; default: PRECISE_DATA.

    A stem is as rare as in the language in which it is commonest, so that function words of a language
    with few documents are common too.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    paragraphs: Counter[str] = Counter()
    for path in sorted(Path(folder or os.environ["PRECISE_DATA"]).glob("train_docs_*.jsonl.gz")):
        if any(name in path.name for name in NOT_FREE):
            continue
        for number, record in enumerate(read_lines(path)):
            if "standardebooks" in path.name and number % 4:
                continue
            language = record.get("lang", "en")
            for section in record["sections"]:
                for paragraph in section["paragraphs"]:
                    counts[language].update(set(read_words(paragraph).stems))
                    paragraphs[language] += 1
    share = np.zeros(SIZE)
    for language, stems in counts.items():
        for stem, count in stems.items():
            if count >= LEAST:
                place = slot(stem, SIZE)
                share[place] = max(share[place], count / (paragraphs[language] + SMOOTH))
    rarity = -np.log(np.maximum(share, 1.5 / max(paragraphs.values())))
    return np.clip(np.round(rarity * IDF_STEPS), 0, 255).astype(np.uint8)
