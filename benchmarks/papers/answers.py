"""How many gold answers are in what each preset and each part sends, and what is made of them.

    python -m benchmarks.papers.answers --data DIR                      # containment; F1 and EM of a reader
    python -m benchmarks.papers.answers --data DIR --llm gpt-4o-mini    # answers, by the papers' metrics
    python -m benchmarks.papers.answers --data DIR --sets quality --llm gpt-4o-mini --metrics accuracy

*Contained* is the share of questions of which an accepted answer stands word for word in what is sent (case,
punctuation and articles aside); yes and no are left out. The reader, if there is one in the package, reads
what is sent in its order and gives a span or none. "unanswerable" are questions of SQuAD 2.0 that their
article does not answer; of them the table shows how often nothing is sent, how often the reader's answer is
less probable than not, and the most probable sentence beside that of answerable ones. The reader begins with
what is sent first, so that an order by scores helps it. With
--llm (any OpenAI-compatible server, --base-url) each pipeline answers by its own loop. Collections are the
documents of the sets up to --characters that no packaged model was trained on. Without a model, ChunkRAG is
run without its rewriter and its relevance filter.
"""

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.adoption.__main__ import held_out
from precise_rag import PreciseRAG
from precise_rag.context import context_passages
from precise_rag.documents import read_json_lines
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.datasets import Question
from precise_rag.evaluation.measures.answers import METRICS, accuracy, normalize_answer, score_answers
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import DenseIndex
from precise_rag.llm import OpenAIChat
from precise_rag.protocols import Encoder
from precise_rag.segmentation.training.corpus import area_under_curve
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Document, Selection

Reader = Callable[[str, Sequence[str]], tuple[str, float] | None]
"""Function from a question and the texts that are sent to an answer and its probability; None without one."""

UNANSWERABLE = "squad2_unanswerable"
WITHOUT_MODEL = {"chunkrag": {"rewriter": None, "relevance": None}}
"""Stages that ask a model, by preset."""
PARTS = ("redundancy", "evidence", "selector")
"""Parts of the default pipeline that are left out one by one; without the reranker no other can follow."""
SEARCH = "precise: search alone, 10 best"
NAIVE = "naive: 200 tokens, 15 best"


def pipelines(
    documents: Sequence[Document], encoder: Encoder, llm: Any = None
) -> Iterator[tuple[str, PreciseRAG]]:
    """Yield each pipeline with its name: naive, the presets, and the default one without each part."""
    plain: dict[str, Any] = {"reranker": None, "redundancy": None, "evidence": None, "selector": None}
    naive = DenseIndex.build(documents, encoder, chunks="200 tokens")
    feedback = {"style": "short"}
    yield NAIVE, PreciseRAG(naive, llm, n_candidates=15, feedback=None, **plain, **feedback)
    whole = PreciseRAG.from_documents(documents, llm, encoder=encoder, **feedback)
    yield "precise", whole
    yield SEARCH, PreciseRAG(whole.index, llm, **plain, **feedback).with_k(10)
    for part in PARTS:
        yield f"precise without {part}", PreciseRAG(whole.index, llm, **{part: None}, **feedback)
    for preset in ("sage", "paretorag", "chunkrag", "recursive"):
        left_out = WITHOUT_MODEL.get(preset, {}) if llm is None else {}
        yield (
            preset,
            PreciseRAG.from_documents(
                documents,
                llm,
                preset=preset,
                encoder=encoder,
                **left_out,
                **feedback,  # type: ignore[arg-type]
            ),
        )


def packaged_reader() -> Reader | None:
    """The extractive reader of the package, if this version has one."""
    if find_spec("precise_rag.reading") is None:
        return None
    from precise_rag.reading import read_answer

    def read(question: str, texts: Sequence[str]) -> tuple[str, float] | None:
        found = read_answer(question, list(texts))
        return None if found is None else (found.text, float(found.probability))

    return read


def measure(
    rag: PreciseRAG,
    questions: Sequence[Question],
    reader: Reader | None,
    llm: Any = None,
    metrics: Sequence[str] = ("F1", "EM"),
) -> dict[str, float]:
    """The figures of a pipeline on questions that have answers."""
    contained, tokens, read, written = [], [], [], []
    chosen: list[tuple[Any, Any]] = []
    for question in questions:
        selection = rag.retrieve(question.text)
        texts = sent(rag, selection)
        tokens.append(sum(map(estimate_tokens, texts)))
        if is_extractive(question):
            contained.append(is_contained(question.answers, texts))
        if reader is not None:
            found = reader(question.text, texts) if texts else None
            read.append(found[0] if found else "")
        if llm is not None:
            options = question.metadata.get("options") or ()
            answer = rag.answer(question.text, options=options)
            written.append(answer.text)
            chosen.append((answer.choice, question.metadata.get("label")))
    figures = {"contained": 100 * _mean(contained), "tokens": _mean(tokens)}
    references = [question.answers for question in questions]
    if reader is not None:
        scored = score_answers(read, references, ("F1", "EM"))
        figures |= {f"reader {name}": 100 * _mean(values) for name, values in scored.items()}
    if llm is not None:
        if all(label is not None for _, label in chosen):
            figures["accuracy"] = 100 * _mean([accuracy(choice, [label]) for choice, label in chosen])
        else:
            scored = score_answers(written, references, [name for name in metrics if name in METRICS])
            figures |= {name: 100 * _mean(values) for name, values in scored.items()}
    return figures


def without_answer(
    rag: PreciseRAG, unanswerable: Sequence[Question], answerable: Sequence[Question], reader: Reader | None
) -> dict[str, float]:
    """What is sent for questions that have no answer, beside questions of the same articles that have one."""
    best: dict[bool, list[float]] = {True: [], False: []}
    said: dict[bool, list[float]] = {True: [], False: []}
    nothing, tokens = [], []
    for has_answer, questions in ((False, unanswerable), (True, answerable)):
        for question in questions:
            selection = rag.retrieve(question.text)
            texts = sent(rag, selection)
            best[has_answer].append(max((c.score for c in selection.kept), default=0.0))
            if reader is not None:
                found = reader(question.text, texts) if texts else None
                said[has_answer].append(found[1] if found else 0.0)
            if not has_answer:
                nothing.append(not selection.kept)
                tokens.append(sum(map(estimate_tokens, texts)))
    figures = {
        "nothing sent": 100 * _mean(nothing),
        "tokens": _mean(tokens),
        "best score": float(np.median(best[False])),
        "best score, answerable": float(np.median(best[True])),
        "AUC by score": _area(best),
    }
    if reader is not None:
        none = [100 * _mean([p < 0.5 for p in said[has_answer]]) for has_answer in (False, True)]
        figures |= {
            "reader: none": none[0],
            "reader: none, answerable": none[1],
            "AUC by reader": _area(said),
        }
    return figures


def sent(rag: PreciseRAG, selection: Selection) -> list[str]:
    """The texts of the passages that a model would read."""
    return [passage.text for passage in context_passages(selection, rag.order)]


def is_extractive(question: Question) -> bool:
    """Whether an answer can stand in a text: it has one that is more than yes or no."""
    return any(normalize_answer(answer) not in ("", "yes", "no") for answer in question.answers)


def is_contained(answers: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether one of the answers stands in one of the texts, as whole words."""
    spoken = [f" {normalize_answer(text)} " for text in texts]
    wanted = [normalize_answer(answer) for answer in answers]
    return any(f" {answer} " in text for answer in wanted if answer for text in spoken)


def collection(name: str, args: Namespace) -> tuple[list[Document], list[Question]]:
    """Documents up to --characters, and questions about them; by document if a set marks no evidence."""
    dataset = load_development_set(name, args.data)
    if any(question.evidence for question in dataset.questions):
        return held_out(name, args)
    documents, size = [], 0
    for document in dataset.documents:
        if not documents or size + len(document.text) <= args.characters:
            documents.append(document)
            size += len(document.text)
    ids = {document.id for document in documents}
    questions = [question for question in dataset.questions if question.doc_id in ids]
    order = np.random.default_rng(args.seed).permutation(len(questions))[: args.sample]
    return documents, [questions[place] for place in order.tolist()]


def unanswerable_of(documents: Sequence[Document], args: Namespace) -> list[Question]:
    """A sample of the questions of SQuAD 2.0 about these documents that they do not answer."""
    ids = {document.id for document in documents}
    path = Path(args.data) / f"dev_qa_questions_{UNANSWERABLE}.jsonl.gz"
    found = [
        Question(str(row["id"]), row["question"], doc_id=row["doc_id"])
        for _, _, row in read_json_lines(path)
        if row["doc_id"] in ids
    ]
    order = np.random.default_rng(args.seed).permutation(len(found))[: args.sample]
    return [found[place] for place in order.tolist()]


def _area(scores: Mapping[bool, Sequence[float]]) -> float:
    labels = np.array([True] * len(scores[True]) + [False] * len(scores[False]))
    return area_under_curve(np.array([*scores[True], *scores[False]], dtype=np.float32), labels)


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def table(rows: Mapping[str, Mapping[str, float]], first: str) -> str:
    """A row for each name, a column for each figure."""
    columns = list(next(iter(rows.values())))
    body = [
        [
            name,
            *(
                "–"
                if row[c] != row[c]
                else f"{row[c]:.2f}"
                if (row[c] <= 1 and "score" in c) or "AUC" in c
                else f"{row[c]:,.1f}"
                for c in columns
            ),
        ]
        for name, row in rows.items()
    ]
    return format_markdown([first, *columns], body)


def render(results: Mapping[str, Any]) -> str:
    parts = ["# Answers in what is sent", (__doc__ or "").split("\n\n", 2)[2].strip()]
    for name, rows in results.items():
        if name != "unanswerable":
            parts += [f"## {name}: {rows['questions']} questions", table(rows["pipelines"], "pipeline")]
    sets = [rows["pipelines"] for name, rows in results.items() if name != "unanswerable"]
    if len(sets) > 1:
        means = {
            pipeline: {
                c: _mean([rows[pipeline][c] for rows in sets if rows[pipeline][c] == rows[pipeline][c]])
                for c in sets[0][pipeline]
            }
            for pipeline in sets[0]
        }
        parts[2:2] = ["## Mean over the sets", table(means, "pipeline")]
    if "unanswerable" in results:
        parts += ["## Questions without an answer", table(results["unanswerable"], "pipeline")]
    return "\n\n".join(parts)


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, "squad,covidqa,fairytaleqa,hotpotqa", sample=25)
    record.add_encoder(parser)
    parser.add_argument("--characters", type=int, default=80_000, help="of a set's documents (%(default)s)")
    parser.add_argument("--llm", help="an OpenAI-compatible chat model that answers the questions")
    parser.add_argument("--base-url")
    parser.add_argument(
        "--metrics", default="F1,EM,ROUGE-L,BLEU-1,BLEU-4", help="METEOR needs NLTK's WordNet"
    )
    args = parser.parse_args()
    llm = OpenAIChat(args.llm, base_url=args.base_url) if args.llm else None
    results = run(args, record.cached_encoder(args), packaged_reader(), llm)
    record.save("papers", "answers", record.made(__spec__.name, args), render(results), {"results": results})


def run(args: Namespace, encoder: Encoder, reader: Reader | None, llm: Any = None) -> dict[str, Any]:
    """The figures by set and pipeline, and of questions without an answer where the set is SQuAD."""
    results: dict[str, Any] = {}
    for name in args.sets.split(","):
        documents, questions = collection(name, args)
        asked = [question for question in questions if question.answers]
        rows, none = {}, {}
        unanswerable = unanswerable_of(documents, args) if name == "squad" else []
        for title, rag in pipelines(documents, encoder, llm):
            rows[title] = measure(rag, asked, reader, llm, args.metrics.split(","))
            print(json.dumps({"set": name, "pipeline": title, **rows[title]}), flush=True)
            if unanswerable and not title.startswith("precise "):
                none[title] = without_answer(rag, unanswerable, asked, reader)
        results[name] = {"questions": len(asked), "pipelines": rows}
        if none:
            results["unanswerable"] = none
    return results


if __name__ == "__main__":
    main()
