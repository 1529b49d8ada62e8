"""How many gold answers are in what each preset and each part sends, and what is made of them.

    python -m benchmarks.papers.answers --data DIR                      # containment; F1 and EM of the reader
    python -m benchmarks.papers.answers --data DIR --llm gpt-4o-mini    # answers, by the papers' metrics
    python -m benchmarks.papers.answers --data DIR --sets quality --llm gpt-4o-mini --metrics accuracy

*Contained* is the share of questions of which an accepted answer stands word for word in what is sent (case,
punctuation and articles aside), of those whose answer so stands in the documents; yes and no are left out.
*Reader*: the packaged reader reads what each pipeline sends, in its order and at most its first eight
windows of 256 tokens, with the default reranker's probabilities of the sentences. So what it finds depends
on the order, too. With --llm (any OpenAI-compatible server, --base-url) each pipeline answers by its own
loop. Intervals are of 95 %, over questions; the differences are paired with "precise".

What is sent, what is read and what a model answers is kept in the work folder (--work): a run that was
stopped goes on where it was, and another reader reads the same contexts. --contexts ends before the reader.
Without a model, ChunkRAG is run without its rewriter and its relevance filter.
"""

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.papers.contexts import (
    Collection,
    collection,
    contexts,
    file_of,
    pipelines,
    remembered,
    with_interval,
)
from benchmarks.tables import cell, table
from precise_rag import AnswerReader
from precise_rag.evaluation.datasets import Question
from precise_rag.evaluation.measures.answers import METRICS, accuracy, normalize_answer, score_answers
from precise_rag.evaluation.measures.statistics import compare_over_sets
from precise_rag.llm import OpenAIChat
from precise_rag.models.packaged import packaged_checksums, packaged_model
from precise_rag.protocols import Encoder, Reader
from precise_rag.reading.reader import ranked_texts
from precise_rag.reading.unanswered import LEAST_ANSWERED
from precise_rag.segmentation.training.corpus import area_under_curve
from precise_rag.sentences import split_sentences
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Excerpt, FloatArray, Reading

BASE = "precise"
"""The pipeline that the others are compared with."""

NOT_EXTRACTIVE = ("", "yes", "no")


class Sent(NamedTuple):
    """What a pipeline sends for the questions of a collection, and what was made of it.

    contexts, unanswerable: the excerpts for each question that has an answer, and for each that has none.
    readings, none_readings: the reader's of the first of them.
    written: text and choice of a model's answers.
    """

    contexts: Sequence[tuple[Excerpt, ...]]
    unanswerable: Sequence[tuple[Excerpt, ...]]
    readings: Sequence[Reading] = ()
    none_readings: Sequence[Reading] = ()
    written: Sequence[tuple[str, int | None]] = ()


def main() -> None:
    parser = record.parse_arguments(
        __spec__.name, __doc__, "squad,covidqa,fairytaleqa,hotpotqa,nq", sample=80
    )
    record.add_encoder(parser)
    record.add_characters(parser, 80_000)
    parser.add_argument("--contexts", action="store_true", help="only find out what is sent")
    parser.add_argument(
        "--leave-out", default="", help="pipelines that are not measured, with commas between"
    )
    parser.add_argument(
        "--read", type=int, default=80, help="questions a set at most for the reader (%(default)s)"
    )
    parser.add_argument("--llm", help="an OpenAI-compatible chat model that answers the questions")
    parser.add_argument("--base-url")
    parser.add_argument(
        "--metrics", default="F1,EM,ROUGE-L,BLEU-1,BLEU-4", help="METEOR needs NLTK's WordNet"
    )
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    collections = [collection(name, args) for name in args.sets.split(",")]
    if args.contexts:
        for one in collections:
            list(sent_by(one, args, encoder))
        return
    llm = OpenAIChat(args.llm, base_url=args.base_url) if args.llm else None
    results = run(collections, args, encoder, AnswerReader(min_score=0.0), llm)
    record.save("papers", "answers", record.made(__spec__.name, args), render(results), {"results": results})


def sent_by(
    given: Collection,
    args: Namespace,
    encoder: Encoder,
    reader: Reader | None = None,
    llm: Any = None,
) -> Iterator[tuple[str, Sent]]:
    """Yield what each pipeline sends, by its name, with what the reader and the model make of it."""
    asked, none = given.questions, given.unanswerable
    every = [*asked, *none]
    model = () if llm is None else (llm.name,)
    weights = sorted(packaged_checksums(packaged_model("reader")).values())
    known: dict[tuple[str, ...], Reading] = {}

    def read_anew(question: Question, excerpts: Sequence[Excerpt]) -> Reading:
        key = (question.text, *(excerpt.text for excerpt in excerpts))
        if key not in known:
            known[key] = read(reader, question, excerpts)
        return known[key]

    for title, make in pipelines(given.documents, encoder, llm).items():
        if title in args.leave_out.split(","):
            continue
        label = f"{given.name}, {title}"
        found = contexts(label, make, every, file_of(args, given.name, title, *model))
        by_question = dict(zip((question.id for question in every), found, strict=True))
        sent = Sent(found[: len(asked)], found[len(asked) :])
        if reader is not None:
            file = file_of(args, given.name, title, *model, *weights)
            some = [*asked[: args.read], *none[: args.read]]
            readings = remembered(
                file, some, lambda one, known=by_question: read_anew(one, known[one.id]), f"{label}, read"
            )
            n_read = len(asked[: args.read])
            sent = sent._replace(readings=readings[:n_read], none_readings=readings[n_read:])
        if llm is not None:
            rag = make()
            sent = sent._replace(
                written=remembered(
                    file_of(args, given.name, title, *model, "answers"),
                    asked,
                    lambda one, rag=rag: written(rag, one),
                    f"{label}, answers",
                )
            )
        yield title, sent


def read(reader: Reader | None, question: Question, excerpts: Sequence[Excerpt]) -> Reading:
    """What the reader finds, each sentence with the default reranker's probability."""
    if reader is None or not excerpts:
        return Reading()
    if all(excerpt.score_scale == "probability" and is_of_sentences(excerpt) for excerpt in excerpts):
        return reader.read(question.text, excerpts)
    return reader.read(question.text, ranked_texts(question.text, [excerpt.text for excerpt in excerpts]))


def is_of_sentences(excerpt: Excerpt) -> bool:
    """Whether what was put together to an excerpt are single sentences, as the default path selects them."""
    return all(len(split_sentences(one.candidate.text)) == 1 for one in excerpt.sentences)


def written(rag: Any, question: Question) -> tuple[str, int | None]:
    """The answer of a pipeline's model, and the option that it chose."""
    answer = rag.answer(question.text, options=question.metadata.get("options") or ())
    return answer.text, answer.choice


def figures(sent: Sent, given: Collection, metrics: Sequence[str]) -> dict[str, FloatArray]:
    """The values of each question by the name of the measure; NaN where it has none."""
    asked = given.questions
    known = [spoken(document.text) for document in given.documents]
    texts = [[excerpt.text for excerpt in excerpts] for excerpts in sent.contexts]
    found = {
        "contained": np.array(
            [
                is_contained(question.answers, map(spoken, mine))
                if is_contained(question.answers, known)
                else np.nan
                for question, mine in zip(asked, texts, strict=True)
            ],
            np.float32,
        ),
        "tokens": np.array([sum(map(estimate_tokens, mine)) for mine in texts], np.float32),
    }
    references = [question.answers for question in asked]
    if sent.readings:
        best = [reading.answers[0].text if reading.answers else "" for reading in sent.readings]
        scored = score_answers(best, references[: len(best)], ("F1", "EM"))
        unread = np.full(len(asked) - len(best), np.nan, np.float32)
        found |= {f"reader {name}": np.concatenate([values, unread]) for name, values in scored.items()}
    if sent.written:
        labels = [label for one in asked if isinstance(label := one.metadata.get("label"), int)]
        if len(labels) == len(asked):
            chosen = [accuracy(c, [label]) for (_, c), label in zip(sent.written, labels, strict=True)]
            found["accuracy"] = np.array(chosen, np.float32)
        else:
            names = [name for name in metrics if name in METRICS]
            found |= score_answers([text for text, _ in sent.written], references, names)
    return found


def without_answer(sent: Sent) -> dict[str, float]:
    """What is sent for questions that have no answer, beside those of the same articles that have one.

    "nothing" are the shares in percent that `unanswered="empty"` would send nothing for.
    """
    both = {True: sent.contexts, False: sent.unanswerable}
    best = {has: [max((e.score for e in one), default=0.0) for one in all_] for has, all_ in both.items()}
    found = {
        "tokens": _mean([sum(estimate_tokens(e.text) for e in one) for one in sent.unanswerable]),
        "best score": float(np.median(best[False])),
        "best score, answerable": float(np.median(best[True])),
        "AUC by score": _area(best),
    }
    if not sent.none_readings:
        return found
    readings = {True: sent.readings, False: sent.none_readings}
    answered = {has: [one.answered or 0.0 for one in all_] for has, all_ in readings.items()}
    nothing = {has: 100 * _mean([p < LEAST_ANSWERED for p in all_]) for has, all_ in answered.items()}
    return found | {
        "nothing": nothing[False],
        "nothing, answerable": nothing[True],
        "AUC by reader": _area(answered),
    }


def is_contained(answers: Sequence[str], texts: Iterable[str]) -> bool:
    """Whether an answer that is more than yes or no stands in one of the texts, as whole words.

    texts: as `spoken` returns them.
    """
    wanted = [normalize_answer(answer) for answer in answers]
    wanted = [f" {answer} " for answer in wanted if answer not in NOT_EXTRACTIVE]
    return any(answer in text for text in texts for answer in wanted)


def spoken(text: str) -> str:
    """A text in lower case without punctuation and articles, between blanks."""
    return f" {normalize_answer(text)} "


def _area(scores: Mapping[bool, Sequence[float]]) -> float:
    labels = np.array([True] * len(scores[True]) + [False] * len(scores[False]))
    return area_under_curve(np.array([*scores[True], *scores[False]], dtype=np.float32), labels)


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def run(
    collections: Sequence[Collection],
    args: Namespace,
    encoder: Encoder,
    reader: Reader | None,
    llm: Any = None,
) -> dict[str, Any]:
    """The figures by set and pipeline, of questions without an answer, and the mean over the sets."""
    results: dict[str, Any] = {"sets": {}, "unanswerable": {}}
    every: dict[str, dict[str, dict[str, FloatArray]]] = {}
    for given in collections:
        every[given.name] = values = {}
        for title, sent in sent_by(given, args, encoder, reader, llm):
            values[title] = figures(sent, given, args.metrics.split(","))
            if sent.unanswerable:
                results["unanswerable"][title] = without_answer(sent)
        results["sets"][given.name] = {
            "questions": len(given.questions),
            "read": min(len(given.questions), args.read),
            "without an answer": len(given.unanswerable),
            "documents": len(given.documents),
            "pipelines": {
                title: {name: summary(name, one) for name, one in rows.items()}
                for title, rows in values.items()
            },
        }
    results["mean"] = over_sets(every)
    return results


def summary(name: str, values: FloatArray) -> list[float]:
    """Mean with the bounds of its interval; in percent, but for tokens."""
    times = 1 if name == "tokens" else 100
    return with_interval(times * values[~np.isnan(values)])


def over_sets(every: Mapping[str, Mapping[str, Mapping[str, FloatArray]]]) -> dict[str, dict[str, Any]]:
    """The mean of the sets' means by pipeline, and for measures the paired difference to `BASE`."""
    first = next(iter(every.values()))
    found: dict[str, dict[str, Any]] = {title: {} for title in first}
    for title, row in found.items():
        for name in first[title]:
            sets = [rows for rows in every.values() if name in rows[title]]
            pairs = []
            for rows in sets:
                a, b = rows[title][name], rows[BASE][name]
                known = ~np.isnan(a)
                if known.any():
                    pairs.append((a[known], b[known], None))
            if name == "tokens":
                row[name] = _mean([a.mean() for a, _, _ in pairs])
            elif pairs:
                gain = compare_over_sets(pairs).difference
                mean = _mean([a.mean() for a, _, _ in pairs])
                row[name] = [100 * value for value in (mean, *gain)]
    return found


def render(results: Mapping[str, Any]) -> str:
    parts = ["# Answers in what is sent", record.about(__doc__)]
    sizes = ", ".join(
        f"{name} {rows['questions']}"
        + (f" ({rows['read']} read)" if rows["read"] < rows["questions"] else "")
        for name, rows in results["sets"].items()
    )
    means = [
        {"pipeline": title} | {name: _difference(value, title == BASE) for name, value in row.items()}
        for title, row in results["mean"].items()
    ]
    text = f"Questions: {sizes}. In brackets: the difference to `{BASE}` with its interval."
    parts += ["## Mean over the sets", text, table(means)]
    for name, rows in results["sets"].items():
        body = [
            {"pipeline": title} | {name: _bounded(value) for name, value in row.items()}
            for title, row in rows["pipelines"].items()
        ]
        head = f"## {name}: {rows['questions']} questions, {rows['documents']} documents"
        parts += [head, table(body)]
    if results["unanswerable"]:
        n = next(rows["without an answer"] for rows in results["sets"].values() if rows["without an answer"])
        text = (
            f"{n} questions of SQuAD 2.0 that their article does not answer, and those above that it does. "
            'By default something is always sent. "Nothing" is the share in percent of which the reader '
            f"finds it less than {LEAST_ANSWERED:g} probable that what is sent answers them, which "
            '`unanswered="empty"` then leaves out; AUC 1 would tell the two kinds apart without an error.'
        )
        body = [
            {"pipeline": title}
            | {c: cell(v, ".2f" if "score" in c or "AUC" in c else ",.1f") for c, v in row.items()}
            for title, row in results["unanswerable"].items()
        ]
        parts += ["## Questions without an answer", text, table(body)]
    return "\n\n".join(parts)


def _difference(value: Any, is_base: bool) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}"
    mean, gain, low, high = value
    return f"{mean:.1f}" if is_base else f"{mean:.1f} ({gain:+.1f}: {low:+.1f} to {high:+.1f})"


def _bounded(value: Sequence[float]) -> str:
    mean, low, high = value
    if mean != mean:
        return "–"
    return f"{mean:,.0f}" if mean > 100 else f"{mean:.1f} ({low:.1f}–{high:.1f})"


if __name__ == "__main__":
    main()
