"""Real text to make a collection large: the development sets, and then articles of Wikipedia."""

from collections.abc import Iterator
from pathlib import Path

from precise_rag.documents import read_documents
from precise_rag.types import Document

SETS = ("squad", "hotpotqa", "nq", "fairytaleqa", "covidqa", "rgb", "cuad", "qmsum")


def real_documents(folder: str | Path) -> Iterator[Document]:
    """All documents, SQuAD's first."""
    files = [f"dev_qa_docs_{name}" for name in SETS]
    for file in (*files, "train_docs_wikipedia"):
        yield from read_documents(Path(folder) / f"{file}.jsonl.gz")
