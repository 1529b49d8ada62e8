"""What titles and headings add to the hybrid search, and to its reranking.

    python -m benchmarks.retrieval.headings --data DIR [--sets …] [--sample 150] [--documentation …]

Each collection is searched with and without `HybridSettings.headings`. The question sets have titles in the
metadata. The documentation, of training documents, is Markdown with its headings in the text; its
questions are headings ("heading"), questions made by rule from a sentence ("rule"), and such questions
with words left out and the title of the document added, where the sentence does not have it ("titled").
nDCG@10 of sentences, and the share of the evidence among the best sentences of 200 and 400 tokens, in
the search's own order ("search") and in the cascade's, which reads the candidates of the search with headings
without and with what stands above them ("rerank"); differences with their 95 % interval, questions redrawn
in pairs.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.questions import unseen
from benchmarks.reranking.measure import mean_difference, quality
from benchmarks.sent import covered
from precise_rag.evaluation import Evidence, Question
from precise_rag.index import HybridIndex
from precise_rag.rerank import rerank
from precise_rag.rerank.cascade import cascade_reranker
from precise_rag.types import Candidate, Document
from training.candidate_lists import is_relevant, read_set
from training.weak_questions import (
    WeakQuestion,
    asked_by_heading,
    asked_of_sentences,
    collections,
    texts_of,
)

SETS = "hotpotqa,nq,squad,covidqa,cuad,fairytaleqa"
DOCUMENTATION = "opentelemetry,powershell,peps,owasp-cheatsheets"
BUDGETS = (200, 400)
N_ASKED = 60
"""Questions of each kind and source of documentation."""
Order = Callable[[str, Sequence[Candidate], HybridIndex], Sequence[Candidate]]


class Asked(NamedTuple):
    """Documents and questions about them."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]


def question_sets(names: Sequence[str], folder: str, sample: int, seed: int) -> Iterator[Asked]:
    """Yield the question sets; of those that may be trained on, questions about the other documents."""
    for name in names:
        dataset = unseen(read_set(f"dev/{name}", folder), name)
        yield Asked(name, dataset.documents, dataset.sample(sample, seed).questions)


def documentation(args: Any) -> Iterator[Asked]:
    """Yield the documentation with each kind of question."""
    wanted = args.documentation.split(",")
    for source, number, records in collections(args.data, 1):
        if source not in wanted or number:
            continue
        random = np.random.default_rng(args.seed)
        texts = texts_of(records)
        titles = {r["id"]: r.get("title") or "" for r in records}
        kinds = {
            "heading": list(asked_by_heading(records, random))[:N_ASKED],
            "rule": list(asked_of_sentences(texts, {}, N_ASKED, random)),
            "titled": list(_with_titles(texts, titles, random))[:N_ASKED],
        }
        pages = [_Page(one) for one in records]
        places = {page.document.id: page for page in pages}
        for kind, several in kinds.items():
            questions = [
                Question(f"{kind}-{i}", q.question, (places[q.doc_id].evidence(q),))
                for i, q in enumerate(several)
            ]
            yield Asked(f"{source}: {kind}", [page.document for page in pages], questions)


def _with_titles(
    texts: dict[str, str], titles: dict[str, str], random: np.random.Generator
) -> Iterator[WeakQuestion]:
    for one in asked_of_sentences(texts, {}, 4 * N_ASKED, random):
        title = titles[one.doc_id]
        if title and title.casefold() not in texts[one.doc_id][one.start : one.end].casefold():
            words = one.question.rstrip("?").split()
            kept = [word for word in words if random.random() < 0.6] or words
            yield one._replace(question=f"{' '.join(kept)} {title}?")


class _Page:
    """A training document as Markdown, with the places of its paragraphs."""

    def __init__(self, one: dict[str, Any]) -> None:
        self._plain, self._marked = [], []
        text, plain = "", 0
        for section in one["sections"]:
            if section.get("heading"):
                text += f"{'#' * min(max(section.get('level') or 2, 1), 6)} {section['heading']}\n\n"
            for paragraph in section["paragraphs"]:
                self._plain.append(plain)
                self._marked.append(len(text))
                text, plain = f"{text}{paragraph}\n\n", plain + len(paragraph) + 2
        self.document = Document(one["id"], text, {"title": one.get("title") or ""})

    def evidence(self, question: WeakQuestion) -> Evidence:
        return Evidence(question.doc_id, self._place(question.start), self._place(question.end - 1) + 1)

    def _place(self, plain: int) -> int:
        row = bisect_right(self._plain, plain) - 1
        return self._marked[row] + plain - self._plain[row]


def measured(index: HybridIndex, questions: Sequence[Question], order: Order) -> np.ndarray:
    """(n, 1 + budgets) nDCG@10 and shares of the evidence of each question."""
    rows = []
    for question in questions:
        candidates = order(question.text, index.search(question.text, 50, returns="sentence"), index)
        relevant = np.array([is_relevant(c, question) for c in candidates])
        places = -np.arange(len(candidates))
        rows.append(
            [quality(places, relevant)[0], *(covered(question, _within(candidates, b)) for b in BUDGETS)]
        )
    return np.array(rows)


def as_found(question: str, candidates: Sequence[Candidate], index: HybridIndex) -> Sequence[Candidate]:
    return candidates


def texts_alone(question: str, candidates: Sequence[Candidate], index: HybridIndex) -> Sequence[Candidate]:
    return reranked(question, [replace(c, above=(), metadata={}) for c in candidates], index)


def reranked(question: str, candidates: Sequence[Candidate], index: HybridIndex) -> Sequence[Candidate]:
    return rerank(question, candidates, cascade_reranker(), index)


def _within(candidates: Sequence[Candidate], budget: int) -> Iterator[Candidate]:
    """The best candidates of `budget` tokens."""
    for candidate in candidates:
        if (candidate.n_tokens or 0) <= budget:
            budget -= candidate.n_tokens or 0
            yield candidate


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, SETS, sample=150)
    parser.add_argument("--documentation", default=DOCUMENTATION, help="sources (%(default)s)")
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    measures = ("nDCG@10", *(f"evidence@{budget}" for budget in BUDGETS))
    rows = []
    sets = question_sets(args.sets.split(","), args.data, args.sample, args.seed)
    for asked in (*sets, *documentation(args)):
        built = {on: HybridIndex.build(asked.documents, encoder, headings=on) for on in (False, True)}
        ways = {
            "search": [(built[False], as_found), (built[True], as_found)],
            "rerank": [(built[True], texts_alone), (built[True], reranked)],
        }
        for way, pair in ways.items():
            without, with_ = (measured(index, asked.questions, order) for index, order in pair)
            for column, measure in enumerate(measures):
                gain, low, high = mean_difference({"": without[:, column]}, {"": with_[:, column]})
                row = {"collection": asked.name, "questions": len(asked.questions), "in": way}
                means = (float(values[:, column].mean()) for values in (without, with_))
                row |= {"measure": measure} | dict(zip(("without", "with"), means, strict=True))
                rows.append(row | {"gain": gain, "low": low, "high": high})
                print(rows[-1], flush=True)
    record.save_rows(__spec__.name, args, "retrieval/headings", "Titles and headings", rows, form=".3f")


if __name__ == "__main__":
    main()
