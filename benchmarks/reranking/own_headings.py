"""What `precise adapt` gains without questions of yours: by those that documents ask in their headings.

    python -m benchmarks.reranking.own_headings --data DIR [--sets nq,qasper]

The headings of each set are put into its documents in Markdown, as a reader of the page sees them. `adapt` is
given every other one as a question. Human questions about the documents then judge, with the whole default
path: of how many an answer is in what is sent, of those that have one word for word in their document. Where
`adapt` says that nothing is surely gained, everything stays as it is. Gains have 95 % intervals, over
questions. No question is about a document that a packaged model was trained on.
"""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.papers.answers import is_contained, spoken
from benchmarks.questions import unseen
from benchmarks.tables import table
from precise_rag import HybridIndex, PreciseRAG
from precise_rag.context import context_passages
from precise_rag.documents import read_json_lines
from precise_rag.evaluation import Dataset, Question, compare_paired, load_development_set
from precise_rag.evaluation.adapting import adapt
from precise_rag.evaluation.own_questions import own_questions
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Document


def collection(name: str, args: Namespace) -> Dataset:
    """A set's documents up to --characters with their headings, and at most --sample questions about them."""
    dataset = unseen(load_development_set(name, args.data))
    path = Path(args.data) / f"dev_qa_docs_{name}.jsonl.gz"
    sections = {str(row["id"]): row["sections"] for _, _, row in read_json_lines(path)}
    about = {question.doc_id for question in dataset.questions}
    documents: list[Document] = []
    for document in dataset.documents:
        if document.id in about and sum(len(one.text) for one in documents) < args.characters:
            documents.append(replace(document, text=with_headings(sections[document.id])))
    known = {document.id: spoken(document.text) for document in documents}
    questions = [
        question
        for question in dataset.questions
        if is_contained(question.answers, [known.get(question.doc_id or "", "")])
    ]
    return replace(dataset, documents=tuple(documents), questions=tuple(questions)).sample(
        args.sample, args.seed
    )


def with_headings(sections: Sequence[Mapping[str, Any]]) -> str:
    """The text of sections with their headings in Markdown."""
    headings = [[f"## {section['heading']}"] if section.get("heading") else [] for section in sections]
    return "\n\n".join(
        part
        for heading, section in zip(headings, sections, strict=True)
        for part in (*heading, *section["paragraphs"])
    )


def shares(rag: PreciseRAG, questions: Sequence[Question]) -> tuple[list[float], float]:
    """Whether an answer to each question is sent, and the mean of the tokens."""
    found, tokens = [], []
    for question in questions:
        passages = context_passages(rag.retrieve(question.text))
        tokens.append(sum(estimate_tokens(passage.text) for passage in passages))
        found.append(float(is_contained(question.answers, [spoken(p.text) for p in passages])))
    return found, float(np.mean(tokens))


def rows(name: str, args: Namespace) -> list[dict[str, Any]]:
    """The rows of a set: as it is, and adapted by its headings."""
    dataset, encoder = collection(name, args), record.cached_encoder(args)
    made = own_questions(dataset.documents, most=args.headings)
    learned = adapt(HybridIndex.build(made.documents, encoder), made.questions)
    print(name, len(dataset.questions), learned.says, flush=True)
    index = HybridIndex.build(dataset.documents, encoder)
    before, tokens = shares(PreciseRAG(index, reader=None), dataset.questions)
    common = {"set": name, "questions": len(dataset.questions), "headings": learned.n_questions}
    as_it_is = {**common, "reranker": "as it is", "answers sent (%)": 100 * np.mean(before), "tokens": tokens}
    if learned.adaptation is None:
        return [{**as_it_is, "reranker": "as it is; `adapt` gains nothing", "gain": "", "says": learned.says}]
    index.adaptation = learned.adaptation
    after, tokens = shares(PreciseRAG(index, reader=None), dataset.questions)
    gain = "{:+.1f} ({:+.1f} to {:+.1f})".format(*(100 * v for v in compare_paired(after, before).difference))
    adapted = {
        **common,
        "reranker": "adapted",
        "answers sent (%)": 100 * np.mean(after),
        "tokens": tokens,
        "gain": gain,
    }
    return [{**as_it_is, "gain": ""}, {**adapted, "says": learned.says}]


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, "nq,qasper", sample=100)
    record.add_characters(parser, 200_000)
    parser.add_argument("--headings", type=int, default=100, help="that are asked at most (%(default)s)")
    args = parser.parse_args()
    found = [row for name in args.sets.split(",") for row in rows(name, args)]
    record.save("reranking", "own-headings", record.made(__spec__.name, args), render(found), {"rows": found})


def render(found: Sequence[Mapping[str, Any]]) -> str:
    shown = [{name: value for name, value in row.items() if name != "says"} for row in found]
    said = "\n".join(f"- {row['set']}: {row['says']}" for row in found if "says" in row)
    return "\n\n".join(
        ["# Adapting by headings", record.about(__doc__), table(shown), f"What `adapt` says:\n\n{said}"]
    )


if __name__ == "__main__":
    main()
