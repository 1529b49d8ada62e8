"""Training examples of the cross-encoder: questions with a few candidates, some of them relevant.

Real examples come from the candidate lists, with the hard negatives in them. Weak examples are headings,
and questions made by rule, of the training documents of every domain; their negatives are the best that
BM25 finds in a collection of the same source.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from precise_rag import split_sentences
from precise_rag.documents import read_json_lines
from precise_rag.evaluation import Evidence, Question
from precise_rag.index import BM25Index
from precise_rag.protocols import Encoder
from precise_rag.types import Document
from training.candidate_lists import CandidateList, is_relevant
from training.reranker_cascade.questions import as_typed, question_from

NOT_FREE = ("brown", "wikitext2", "multilingual")
"""Sources whose licence forbids commercial use, whose rare words are replaced, or not in English."""

KINDS = {"sentences": 0.5, "bm25": 0.3, "passages": 0.1, "dense": 0.1}
"""Shares of the kinds of lists among the real examples."""

N_SHOWN = {"sentences": 8, "bm25": 6, "passages": 5, "dense": 5}
"""Candidates of one example, by kind of list; fewer if they are longer."""

MOST_RELEVANT = 3
"""Relevant candidates of one example, at most."""

TOP = 12
"""Half of the negatives are drawn from this many of the best ones, the rest from the whole list."""

SHARES = {"wikipedia": 3.0, "openstax": 2.0, "standardebooks": 1.5}
"""Factors of the number of weak examples, by source; 1 for other sources."""

CHARACTERS = 400_000
"""Characters of a collection in which negatives of weak questions are searched."""

_PLAIN_HEADING = re.compile(
    r"^(introduction|abstract|summary|overview|see also|conclusion|references|notes?|examples?|remarks|"
    r"background|motivation|rationale|specification|copyright|history|chapter.*|[ivxlc\d.\s]+|acknowledge?ments?|"
    r"appendix.*)$",
    re.IGNORECASE,
)


class Example(NamedTuple):
    """A question, the texts of some candidates, which of them are relevant, and the source."""

    question: str
    texts: tuple[str, ...]
    relevant: np.ndarray
    source: str


def from_lists(
    found: Sequence[CandidateList], kind: str, source: str, random: np.random.Generator
) -> Iterator[Example]:
    """Yield one example of each list that has relevant and other candidates."""
    for one in found:
        example = _example(one.question, [c.text for c in one.candidates], one.relevant, kind, source, random)
        if example:
            yield example


def _example(
    question: str,
    texts: Sequence[str],
    relevant: np.ndarray,
    kind: str,
    source: str,
    random: np.random.Generator,
) -> Example | None:
    good, bad = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    if not len(good) or len(bad) < 2:
        return None
    shown = N_SHOWN[kind]
    good = random.permutation(good)[: min(MOST_RELEVANT, shown // 2)]
    near = random.permutation(bad[:TOP])[: (shown - len(good) + 1) // 2]
    far = random.permutation(np.setdiff1d(bad, near))[: shown - len(good) - len(near)]
    rows = np.concatenate([good, near, far])
    return Example(question, tuple(texts[row] for row in rows), relevant[rows], source)


def weak_examples(
    folder: str | None, per_source: int, encoder: Encoder, random: np.random.Generator
) -> Iterator[Example]:
    """Yield about `per_source` weak examples of each source of training documents, times its share."""
    for path in sorted(Path(folder or os.environ["PRECISE_DATA"]).glob("train_docs_*.jsonl.gz")):
        source = path.name.removeprefix("train_docs_").removesuffix(".jsonl.gz")
        if source in NOT_FREE:
            continue
        records = [record for _, _, record in read_json_lines(path)]
        order = random.permutation(len(records))
        collection: list[dict] = []
        wanted = round(per_source * SHARES.get(source, 1.0))
        size, left = 0, wanted
        for row in order:
            collection.append(records[row])
            size += len(json.dumps(records[row]))
            if (size > CHARACTERS and len(collection) >= 8) or row == order[-1]:
                n_wanted = min(left, wanted // 2 + 1)
                yield from _collection_examples(collection, n_wanted, source, encoder, random)
                left -= n_wanted
                collection, size = [], 0
            if left <= 0:
                break


class _Question(NamedTuple):
    """A question and the span that answers it."""

    question: str
    doc_id: str
    start: int
    end: int


def _collection_examples(
    records: Sequence[dict], n_examples: int, source: str, encoder: Encoder, random: np.random.Generator
) -> Iterator[Example]:
    texts = {
        record["id"]: "\n\n".join(p for s in record["sections"] for p in s["paragraphs"])
        for record in records
    }
    documents = [Document(key, text) for key, text in texts.items() if text]
    indexes = {
        "sentences": BM25Index.build(documents, encoder, chunks="sentences"),
        "bm25": BM25Index.build(documents, encoder, chunks="100 tokens"),
    }
    asked = [*_headings(records, random)][: n_examples * 2 // 5]
    asked += [*_sentences(texts, n_examples - len(asked), random)]
    for one in asked:
        kind = "sentences" if random.random() < 0.6 else "bm25"
        evidence = (Evidence(one.doc_id, one.start, one.end),)
        question = Question("", one.question, evidence)
        found = list(indexes[kind].search(one.question, 40))
        relevant = np.array([is_relevant(c, question) for c in found], dtype=bool)
        if not relevant.any():
            text = texts[one.doc_id][one.start : one.end][:400]
            missed = [c for c in indexes[kind].search(text, 5) if is_relevant(c, question)]
            found, relevant = [*missed, *found], np.concatenate([np.ones(len(missed), dtype=bool), relevant])
        example = _example(
            as_typed(one.question, random), [c.text for c in found], relevant, kind, f"weak/{source}", random
        )
        if example:
            yield example


def _headings(records: Sequence[dict], random: np.random.Generator) -> Iterator[_Question]:
    """Yield headings as questions, answered by the beginning of their sections, in random order."""
    asked = []
    for record in records:
        place = 0
        for section in record["sections"]:
            text = "\n\n".join(section["paragraphs"])
            heading = section.get("heading")
            if heading and len(text) > 80 and not _PLAIN_HEADING.match(heading) and len(heading) < 120:
                title = record.get("title") or ""
                if title.casefold() not in heading.casefold() and (
                    " " not in heading or random.random() < 0.4
                ):
                    heading = f"{title} {heading}" if random.random() < 0.5 else f"{heading} of {title}"
                shape = ("{}", "{}", "{}?", "What about {}?", "explain {}", "How does {} work?")[
                    random.integers(6)
                ]
                asked.append(
                    _Question(shape.format(heading), record["id"], place, place + min(len(text), 500))
                )
            place += len(text) + 2
    for row in random.permutation(len(asked)):
        yield asked[row]


def _sentences(texts: dict[str, str], n_wanted: int, random: np.random.Generator) -> Iterator[_Question]:
    """Yield questions made from sentences drawn at random."""
    spans = [(key, span) for key, text in texts.items() for span in split_sentences(text)]
    made = 0
    for row in random.permutation(len(spans)):
        key, span = spans[row]
        sentence = texts[key][span.start : span.end].strip()
        if made == n_wanted:
            break
        if not 8 <= len(sentence.split()) <= 45:
            continue
        question = question_from(sentence, random)
        if question and len(question.split()) > 2:
            made += 1
            yield _Question(question, key, span.start, span.end)
