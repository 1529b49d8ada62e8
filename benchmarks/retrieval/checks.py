"""Questions that no setting was chosen on: from the documents and questions meant for training.

Stories and meetings come with questions of their own. For encyclopedia, textbooks and technical
documentation the title of a document and the heading of a section ask for the section (headings are not
part of a document's text), and the title of an article asks for its first paragraph.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from precise_rag.evaluation import Dataset, Evidence, load_development_set
from precise_rag.evaluation.datasets import Question
from precise_rag.types import Document

STORIES, MEETINGS = "fairytaleqa (train)", "qmsum (train)"
HEADINGS = {
    "wikipedia": {"wikipedia": 50},
    "openstax": {"openstax": 90},
    "technical": {"peps": 12, "rust-rfcs": 20, "opentelemetry": 40, "cpp": 60, "owasp-cheatsheets": 12},
}
"""Files of documents, and how many documents of each are drawn."""
LEADS = "wikipedia (first paragraphs)"
CHECKS = (STORIES, MEETINGS, *(f"{name} (headings)" for name in HEADINGS), LEADS)
_DRAWN = {STORIES: 40, MEETINGS: 15}
_WORDS = (30, 400)
"""Sections of fewer or more words are not asked for."""


def load_check_set(name: str, folder: str | Path, seed: int = 0) -> Dataset:
    """One of CHECKS, from the folder of the data sets."""
    random = np.random.default_rng(seed)
    if name in _DRAWN:
        whole = load_development_set(name.partition(" ")[0], folder, split="train").with_evidence()
        drawn = random.permutation(len(whole.documents))[: _DRAWN[name]]
        return whole.restrict([whole.documents[i].id for i in sorted(drawn)])
    topic = name.partition(" ")[0]
    records = [
        record
        for source, n_documents in HEADINGS[topic].items()
        for record in _drawn(Path(folder) / f"train_docs_{source}.jsonl.gz", n_documents, random)
    ]
    documents = [Document(record["id"], "\n\n".join(_paragraphs(record))) for record in records]
    asked = _leads(records) if name == LEADS else _headings(records)
    return Dataset(name, tuple(documents), tuple(asked))


def _drawn(file: Path, n_documents: int, random: np.random.Generator) -> list[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    drawn = random.permutation(len(records))[:n_documents]
    return [records[i] for i in sorted(drawn) if any(_paragraphs(records[i]))]


def _paragraphs(record: dict[str, Any]) -> list[str]:
    return [paragraph for section in record["sections"] for paragraph in section["paragraphs"]]


def _headings(records: list[dict[str, Any]]) -> Iterator[Question]:
    """One a section whose heading no other section has: "title: heading"."""
    headings = Counter(section["heading"] for record in records for section in record["sections"])
    for record in records:
        start = 0
        for number, section in enumerate(record["sections"]):
            length = len("\n\n".join(section["paragraphs"]))
            heading = section["heading"]
            n_words = sum(len(paragraph.split()) for paragraph in section["paragraphs"])
            if heading and headings[heading] == 1 and _WORDS[0] <= n_words <= _WORDS[1]:
                evidence = Evidence(record["id"], start, start + length)
                yield Question(f"{record['id']}#{number}", f"{record['title']}: {heading}", (evidence,))
            start += length + 2 if section["paragraphs"] else 0


def _leads(records: list[dict[str, Any]]) -> Iterator[Question]:
    for record in records:
        evidence = Evidence(record["id"], 0, len(_paragraphs(record)[0]))
        yield Question(record["id"], record["title"], (evidence,))
