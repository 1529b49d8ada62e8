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
from precise_rag.types import Document

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


def documents_of(records: Sequence[dict]) -> list[Document]:
    """Return the documents that have text, with their titles."""
    texts = ("\n\n".join(p for s in record["sections"] for p in s["paragraphs"]) for record in records)
    titled = zip(records, texts, strict=True)
    return [Document(one["id"], text, {"title": one.get("title") or ""}) for one, text in titled if text]


def asked_of(records: Sequence[dict], n_wanted: int, random: np.random.Generator) -> list[Question]:
    """Return questions about a collection: a third asked by the documents, the rest headings."""
    asked, headings = asked_by_documents(documents_of(records)), asked_by_heading(records, random)
    drawn = [asked[row] for row in random.permutation(len(asked))[: n_wanted // 3]]
    return [*drawn, *(headings[row] for row in random.permutation(len(headings)))][:n_wanted]


def asked_by_heading(records: Sequence[dict], random: np.random.Generator) -> list[Question]:
    """Return headings as questions, answered by the beginning of their sections."""
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
    return asked


def _from_heading(heading: str, title: str, random: np.random.Generator) -> str:
    if heading.endswith("?"):
        return heading
    if title.casefold() not in heading.casefold() and (" " not in heading or random.random() < 0.4):
        heading = f"{title} {heading}" if random.random() < 0.5 else f"{heading} of {title}"
    shapes = ("{}", "{}", "{}?", "What about {}?", "explain {}", "How does {} work?")
    return shapes[random.integers(len(shapes))].format(heading)


def asked_by_documents(documents: Sequence[Document]) -> list[Question]:
    """Return questions that the documents ask, answered by what follows in the paragraph.

    Their metadata "asked" is the span of the question itself.
    """
    asked = []
    for document in documents:
        text = document.text
        for span, following in pairwise(split_sentences(text)):
            question = text[span.start : span.end].strip()
            if not question.endswith("?") or not 4 <= len(question.split()) <= 25:
                continue
            end = text.find("\n\n", following.start)
            end = min(len(text) if end < 0 else end, following.start + _ANSWER)
            if end - following.start > 40 and not text[following.start : following.end].strip().endswith("?"):
                answer = Evidence(document.id, following.start, end)
                asked.append(Question("", question, (answer,), metadata={"asked": span}))
    return asked


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
