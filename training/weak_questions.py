"""Weak questions, made from training documents, so that rerankers learn from every domain.

They are headings, and questions that the documents ask themselves. Each is asked of a collection of documents
of the same source. What is in the package learned from questions made by rule from sentences, too
(`git show e05bf582:training/question_rules.py`).
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from benchmarks.harness.datasets import Evidence, Question, read_lines
from precise_rag import split_sentences
from precise_rag.types import Candidate, Document

NOT_FREE = ("brown", "wikitext2")
"""Sources whose licence forbids commercial use, or whose rare words are replaced."""

SHARES = {"wikipedia": 6.0, "openstax": 5.0, "standardebooks": 2.0, "peps": 1.5, "rust-rfcs": 1.5}
"""Factors of the number of collections, by source; 1 for other sources."""

CHARACTERS = 250_000
"""Characters of a collection."""

_ANSWER = 300
"""Characters after a question of the document itself in which its answer is looked for."""

_PLAIN_HEADING = re.compile(
    r"^(introduction|abstract|summary|overview|see also|conclusion|references|notes?|examples?|remarks|"
    r"background|motivation|rationale|specification|copyright|history|chapter.*|[ivxlc\d.\s]+|acknowledge?ments?|"
    r"appendix.*)$",
    re.IGNORECASE,
)


def free_sources(folder: str) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each source of training documents that may be used, in order."""
    for path in sorted(Path(folder).glob("train_docs_*.jsonl.gz")):
        name = path.name.removeprefix("train_docs_").removesuffix(".jsonl.gz")
        if name not in NOT_FREE:
            yield name, path


def collections(folder: str, n_rounds: int) -> Iterator[tuple[str, int, list[dict]]]:
    """Yield (source, number, records) of collections of training documents.

    n_rounds: collections of each English source, times its share; fewer if its documents do not suffice.
    """
    for source, path in free_sources(folder):
        wanted = round(n_rounds * SHARES.get(source, 1.0)) if source != "multilingual" else 0
        for number, records in enumerate(islice(_split(path, source), wanted)):
            yield source, number, records


def _split(path: Path, source: str) -> Iterator[list[dict]]:
    records = list(read_lines(path))
    collection: list[dict] = []
    size = 0
    order = np.random.default_rng(len(source)).permutation(len(records))
    for row in order:
        collection.append(records[row])
        size += len(json.dumps(records[row], ensure_ascii=False))
        if (size > CHARACTERS and len(collection) >= 4) or row == order[-1]:
            yield collection
            collection, size = [], 0


def texts_of(records: Sequence[dict]) -> dict[str, str]:
    """Return the text of each document, by id."""
    return {r["id"]: "\n\n".join(p for s in r["sections"] for p in s["paragraphs"]) for r in records}


def documents_of(records: Sequence[dict]) -> list[Document]:
    """Return the documents that have text, with their titles."""
    titles = {record["id"]: record.get("title") or "" for record in records}
    return [Document(key, text, {"title": titles[key]}) for key, text in texts_of(records).items() if text]


def asked_of(records: Sequence[dict], n_wanted: int, random: np.random.Generator) -> list[Question]:
    """Return questions about a collection: a third asked by the documents, the rest headings."""
    asked = [*asked_by_documents(texts_of(records), random)][: n_wanted // 3]
    return [*asked, *asked_by_heading(records, random)][:n_wanted]


def asked_by_heading(records: Sequence[dict], random: np.random.Generator) -> Iterator[Question]:
    """Yield headings as questions, answered by the beginning of their sections, in random order."""
    asked = []
    for record in records:
        place = 0
        for section in record["sections"]:
            text = "\n\n".join(section["paragraphs"])
            heading = section.get("heading")
            if heading and len(text) > 80 and not _PLAIN_HEADING.match(heading) and len(heading) < 120:
                answer = Evidence(record["id"], place, place + min(len(text), 500))
                question = _from_heading(heading, record.get("title") or "", random)
                asked.append(Question("", question, (answer,)))
            place += len(text) + 2
    for row in random.permutation(len(asked)):
        yield asked[row]


def _from_heading(heading: str, title: str, random: np.random.Generator) -> str:
    if heading.endswith("?"):
        return heading
    if title.casefold() not in heading.casefold() and (" " not in heading or random.random() < 0.4):
        heading = f"{title} {heading}" if random.random() < 0.5 else f"{heading} of {title}"
    shapes = ("{}", "{}", "{}?", "What about {}?", "explain {}", "How does {} work?")
    return shapes[random.integers(len(shapes))].format(heading)


def asked_by_documents(texts: dict[str, str], random: np.random.Generator) -> Iterator[Question]:
    """Yield questions that the documents ask, answered by what follows in the paragraph, in random order.

    Their metadata "asked" is the span of the question itself.
    """
    asked = []
    for key, text in texts.items():
        for span, following in pairwise(split_sentences(text)):
            question = text[span.start : span.end].strip()
            if not question.endswith("?") or not 4 <= len(question.split()) <= 25:
                continue
            end = text.find("\n\n", following.start)
            end = min(len(text) if end < 0 else end, following.start + _ANSWER)
            if end - following.start > 40 and not text[following.start : following.end].strip().endswith("?"):
                answer = Evidence(key, following.start, end)
                asked.append(Question("", question, (answer,), metadata={"asked": span}))
    for row in random.permutation(len(asked)):
        yield asked[row]


def asks_itself(candidate: Candidate, question: Question) -> bool:
    """Check whether a candidate holds the question where its document asks it."""
    span = question.metadata.get("asked")
    is_there = span is not None and candidate.doc_id == question.group
    return is_there and candidate.start < span.end and span.start < candidate.end


def as_typed(query: str, random: np.random.Generator) -> str:
    """Make a query sloppy at random: lower case, no question mark, last words left out."""
    if random.random() < 0.2:
        query = query.lower()
    if random.random() < 0.2:
        query = query.rstrip("?. ")
    words = query.split()
    if len(words) > 6 and random.random() < 0.1:
        query = " ".join(words[: int(random.integers(5, len(words)))])
    return query
