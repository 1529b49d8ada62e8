"""Batches of questions and passages, in which every passage is a negative for most questions."""

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from training.encoder.pack import Pack

SEED = 0
SHARE = 0.6
"""The weight of a set is the number of its questions to this power."""
WEAK_SHARE = 0.12
N_NEAR, N_BESIDE = 2, 1
"""Passages with like words, and other passages of the same document, that come with a question."""
N_GOLD = 3
N_JOINING = 10
"""More questions about the same passages, at most."""
N_SENTENCES, SENTENCE_TOKENS = 9, 62
"""Sentences of a passage, and tokens of a sentence, that are read."""
TYPED = 0.4
"""Share of the questions that are read as somebody might type them."""


class Batch(NamedTuple):
    """Questions and the passages that they are asked of.

    questions: n token lists. passages: p lists of sentences. gold: (m, 2) question and sentence (by its place
    among all). apart: (n, p) passages that a question says nothing about, because it is another document's.
    """

    questions: list[list[int]]
    passages: list[list[list[int]]]
    gold: np.ndarray
    apart: np.ndarray


class Source:
    """A pack that hands out questions with passages, in random order."""

    def __init__(self, name: str, pack: Pack, number: int) -> None:
        self.name, self.pack = name, pack
        self.n = pack.questions.count()
        self._random = np.random.default_rng((SEED, number))
        self.of_sentence = np.repeat(np.arange(len(pack.documents)), np.diff(pack.passages))
        begins = np.searchsorted(pack.evidence[:, 0], np.arange(self.n + 1))
        self._gold = [pack.evidence[low:high, 1] for low, high in pairwise(begins)]
        self._asked: dict[int, list[int]] = defaultdict(list)
        for row, gold in enumerate(self._gold):
            for passage in np.unique(self.of_sentence[gold]):
                self._asked[int(passage)].append(row)
        self._waiting: list[int] = []

    def drawn(self, add: "_Growing") -> None:
        """Add the next question, its passages and other questions about them to a batch."""
        if not self._waiting:
            self._waiting = self._random.permutation(self.n).tolist()
        row, random, pack = self._waiting.pop(), self._random, self.pack
        gold = random.permutation(np.unique(self.of_sentence[self._gold[row]]))[:N_GOLD]
        near = random.permutation(pack.near[row][pack.near[row] >= 0])[:N_NEAR]
        document = pack.documents[gold[0]]
        low, high = np.searchsorted(pack.documents, (document, document + 1))
        beside = random.integers(low, high, N_BESIDE)
        chosen = list(dict.fromkeys(map(int, [*gold, *near, *beside])))
        places = {p: add.passage(*self._window(p, row), self, p) for p in chosen}
        joining = {q for p in chosen for q in self._asked[p]} - {row}
        for question in [row, *random.permutation(sorted(joining))[:N_JOINING].tolist()]:
            typed = random.random() < TYPED
            add.question(
                (pack.typed if typed else pack.questions)[question], self._gold[question], self, places
            )

    def _window(self, passage: int, row: int) -> tuple[int, int]:
        """The sentences of a passage that are read: around the evidence of the question, if it is there."""
        low, high = int(self.pack.passages[passage]), int(self.pack.passages[passage + 1])
        if high - low <= N_SENTENCES:
            return low, high
        gold = self._gold[row]
        inside = gold[(gold >= low) & (gold < high)]
        middle = int(inside[0]) if len(inside) else low
        first = min(max(low, middle - int(self._random.integers(N_SENTENCES))), high - N_SENTENCES)
        return first, first + N_SENTENCES


class _Growing:
    """A batch in the making."""

    def __init__(self) -> None:
        self.questions: list[list[int]] = []
        self.passages: list[list[list[int]]] = []
        self._known: dict[tuple[str, int], int] = {}
        self._sentence: dict[tuple[str, int], int] = {}
        self._gold: list[tuple[int, int]] = []
        self._document: list[tuple[str, int, bool]] = []
        self._asks: list[tuple[str, int]] = []
        self.n_tokens = self._n_sentences = 0

    def passage(self, low: int, high: int, source: Source, passage: int) -> int:
        key = source.name, passage
        if key not in self._known:
            self._known[key] = len(self.passages)
            rows = [source.pack.sentences[s][:SENTENCE_TOKENS] for s in range(low, high)]
            for sentence in range(low, high):
                self._sentence[source.name, sentence] = self._n_sentences
                self._n_sentences += 1
            self.passages.append(rows)
            self.n_tokens += sum(len(row) + 2 for row in rows)
            self._document.append((source.name, int(source.pack.documents[passage]), source.pack.alone))
        return self._known[key]

    def question(self, ids: list[int], gold: np.ndarray, source: Source, places: dict[int, int]) -> None:
        here = [place for s in gold if (place := self._sentence.get((source.name, int(s)))) is not None]
        if not here:
            return
        self._gold += [(len(self.questions), place) for place in here]
        document = source.pack.documents[source.of_sentence[gold[0]]]
        self._asks.append((source.name, int(document)))
        self.questions.append(ids)
        self.n_tokens += len(ids) + 2

    def finished(self) -> Batch:
        apart = np.array(
            [
                [alone and name == source and number != document for name, number, alone in self._document]
                for source, document in self._asks
            ]
        )
        return Batch(self.questions, self.passages, np.array(self._gold), apart)


class Pool:
    """The packs of a folder; those that are written later join when it is looked at again.

    shares: (attribute) by name, the share of the groups of questions that a pack gives.
    left_out: names of packs that are not read. seed: of the order of the questions.
    """

    def __init__(self, folder: Path, left_out: Collection[str] = (), seed: int = 0) -> None:
        self._folder, self._left_out, self._seed = folder, set(left_out), seed
        self._sources: dict[str, Source] = {}
        self.look()

    def look(self) -> None:
        """Read the packs that are new."""
        for path in sorted(self._folder.glob("*.npz")):
            if path.stem not in self._left_out and path.stem not in self._sources:
                number = zlib.crc32(path.stem.encode()) + self._seed
                self._sources[path.stem] = Source(path.stem, Pack.load(path), number)
        self.shares = self._shared()

    def _shared(self) -> dict[str, float]:
        sizes = np.array([source.n for source in self._sources.values()], dtype=float)
        weak = np.array([name.startswith("weak-") for name in self._sources])
        weights = np.where(weak, sizes, sizes**SHARE)
        weights[~weak] /= weights[~weak].sum()
        weights[weak] *= WEAK_SHARE / max(weights[weak].sum(), 1.0)
        return dict(zip(self._sources, (weights / weights.sum()).tolist(), strict=True))

    def batches(self, n_tokens: int, random: np.random.Generator) -> Iterator[Batch]:
        """Yield batches of about so many tokens, without end."""
        while True:
            growing = _Growing()
            while growing.n_tokens < n_tokens:
                name = random.choice(list(self.shares), p=list(self.shares.values()))
                self._sources[name].drawn(growing)
            if len(growing.questions) > 1:
                yield growing.finished()
