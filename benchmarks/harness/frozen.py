"""Answers of one version of the library, to compare those of another with.

    python -m benchmarks.harness.frozen write FILE --data DIR [--questions 200] [--location postgresql://...]
    python -m benchmarks.harness.frozen compare FILE --data DIR ...

An answer is the pieces that one question found: the document, the offsets, and the score to five decimals,
best first. `compare` asks what the file holds as far as --questions goes, prints what differs, and fails if
anything does. Scores may differ by 0.00002, and pieces of equal scores may change places.

The answers: of the retriever of each framework over documentation (`benchmarks/adoption`), and of each preset
over each kind of index, in memory, loaded from a folder, and in a database if there is a --location; for
questions about four development sets. Stages that ask a language model are left out.
"""

import argparse
import gzip
import json
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from langchain_core.documents import Document as Page
from llama_index.core.schema import Document as Node

import langchain_precise
import llamaindex_precise
from benchmarks.adoption.documentation import read_questions, write_documents
from benchmarks.harness.datasets import drawn, load_development_set
from precise_rag import (
    DatabaseIndex,
    DenseIndex,
    HybridIndex,
    PreciseRAG,
    SentenceContextIndex,
    WordSentenceIndex,
    load_encoder,
    load_index,
    read_facts,
)
from precise_rag.encoders import DEFAULT_ENCODER
from precise_rag.types import Document

SETS = ("squad", "covidqa", "hotpotqa", "fairytaleqa")
PRESETS = ("precise", "sage", "paretorag", "chunkrag", "recursive")
KINDS = {
    "hybrid": HybridIndex,
    "dense": DenseIndex,
    "sentence_context": SentenceContextIndex,
    "word_sentence": WordSentenceIndex,
}
Pieces = list[tuple[str, int, int, float]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harness.frozen", description=__doc__)
    parser.add_argument("task", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", required=True, help="folder of the development sets")
    parser.add_argument("--questions", type=int, default=200, help="a set (%(default)s)")
    parser.add_argument("--characters", type=int, default=150_000, help="of a set's documents (%(default)s)")
    parser.add_argument("--location", help="of a PostgreSQL database")
    args = parser.parse_args()
    if args.task == "write":
        with gzip.open(args.file, "wt") as file:
            file.writelines(json.dumps(answer) + "\n" for answer in answers(args))
        return
    with gzip.open(args.file, "rt") as file:
        wanted = dict(map(json.loads, file))
    found = dict(answers(args))
    differing = [key for key in found if not alike(wanted[key], found[key])]
    for key in differing:
        print("differs:", key, "was", wanted[key][:3], "is", found[key][:3])
    print(f"{len(found)} answers compared, {len(differing)} differ")
    raise SystemExit(bool(differing))


def answers(args: argparse.Namespace) -> Iterator[tuple[str, Pieces]]:
    """Yield all answers, each with a key of its own."""
    yield from of_frameworks(args.questions)
    encoder = load_encoder(DEFAULT_ENCODER)
    for name in SETS:
        documents, questions = drawn(load_development_set(name, args.data), args.characters, seed=0)
        for kind, index in indexes(name, documents, encoder, args.location):
            for preset in PRESETS:
                rag = PreciseRAG(index, preset=preset, rewriter=None, relevance=None)
                for question in questions[: args.questions]:
                    kept = rag.retrieve(question.text).kept
                    pieces = [(c.doc_id, c.start, c.end, round(float(c.score), 5)) for c in kept]
                    yield f"{name} {kind} {preset} {question.id}", pieces


def indexes(
    name: str, documents: list[Document], encoder: Any, location: str | None
) -> Iterator[tuple[str, Any]]:
    """Yield each kind of index over the documents, with its name."""
    for kind, made in KINDS.items():
        index = made.build(documents, encoder)
        yield kind, index
        if kind == "hybrid":
            with tempfile.TemporaryDirectory() as folder:
                index.save(Path(folder, "index"))
                yield "loaded", load_index(Path(folder, "index"), encoder)
    if location:
        database = DatabaseIndex(f"{location}&collection=frozen_{name}", encoder)
        database.add(documents)
        yield "postgres", database


def of_frameworks(n_questions: int) -> Iterator[tuple[str, Pieces]]:
    """Yield the answers of the two retrievers over documentation, built from its files with no option set."""
    with tempfile.TemporaryDirectory() as folder:
        names = [name for name in write_documents(Path(folder)) if name.endswith((".rst", ".md", ".html"))]
        texts = {name: Path(folder, name).read_text("utf-8") for name in names}
    nodes = [Node(text=text, id_=name, metadata={"file_name": name}) for name, text in texts.items()]
    pages = [Page(text, id=name, metadata={"source": name}) for name, text in texts.items()]
    for framework, retrieve in (
        ("llamaindex", llamaindex_precise.PreciseRetriever.from_documents(nodes).retrieve),
        ("langchain", langchain_precise.PreciseRetriever.from_documents(pages).invoke),
    ):
        asked = (one for one in read_questions() if one.document in texts)
        for number, one in enumerate(islice(asked, n_questions)):
            facts = map(read_facts, retrieve(one.question))
            pieces = [(f["doc_id"], f["start"], f["end"], round(float(f["score"]), 5)) for f in facts]
            yield f"{framework} {number} {one.question}", pieces


def alike(first: Pieces, second: Pieces) -> bool:
    """Whether two answers have the same pieces, with equal scores, in whatever order."""
    pairs = zip(sorted(map(tuple, first)), sorted(map(tuple, second)), strict=True)
    return len(first) == len(second) and all(
        one[:3] == other[:3] and abs(one[3] - other[3]) <= 2e-5 for one, other in pairs
    )


if __name__ == "__main__":
    main()
