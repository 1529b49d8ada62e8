"""How rare words are, counted over the paragraphs of the training documents."""

import os
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from precise_rag.documents import read_json_lines
from precise_rag.stems import IDF_STEPS, read_words, slot

SIZE = 1 << 18
NOT_FREE = ("brown", "wikitext2")
"""Sources that may not be used commercially, or have rare words replaced."""

LEAST = 4
SMOOTH = 3000


def rarity_table(folder: str | None) -> np.ndarray:
    """The idf table of `precise_rag.stems`.

    A stem's share of paragraphs is that of the language in which it is commonest, so that a function
    word of a language with few documents is common too. Stems in fewer than LEAST paragraphs of a
    language share the greatest rarity.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    paragraphs: Counter[str] = Counter()
    for path in sorted(Path(folder or os.environ["PRECISE_DATA"]).glob("train_docs_*.jsonl.gz")):
        if any(name in path.name for name in NOT_FREE):
            continue
        for number, (_, _, record) in enumerate(read_json_lines(path)):
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
