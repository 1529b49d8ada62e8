"""What the pipeline sends for the same questions in six languages.

    python -m benchmarks.evidence.languages --data DIR [--vectors FILE] [--sample N]

Questions and paragraphs of XQuAD, translated by people; nothing was trained on them. The same questions are
asked in each language. "evidence": share of the marked evidence that is sent. "tokens": what is sent on
average, in tokens of the packaged encoder, which cuts other languages into more pieces than English. "gain":
of evidence over English, documents redrawn in pairs. "text": what is sent as a share of all documents'
characters, which are the same text in each language. "times": of this share over English, questions redrawn.
"""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.sent import Sent, sent_by
from precise_rag import HybridIndex, PreciseRAG
from precise_rag.evaluation import Dataset
from training.candidate_lists import read_set

LANGUAGES = ("en", "de", "es", "ru", "ar", "zh")
_REDRAWN = 2_000


def questions_of(datasets: Mapping[str, Dataset], sample: int) -> list[str]:
    """Return the ids, without their language, of questions that are drawn from those in all languages."""
    common = sorted(set.intersection(*(set(by_name(dataset)) for dataset in datasets.values())))
    return [common[row] for row in np.random.default_rng(1).permutation(len(common))[:sample]]


def by_name(dataset: Dataset) -> dict[str, Any]:
    """Return the questions by their ids without the language."""
    return {question.id.split("/")[1]: question for question in dataset.questions}


def measure(dataset: Dataset, names: list[str], options: Namespace) -> Sent:
    """Return what is sent for the questions; of the documents' characters, the share."""
    asked = by_name(dataset)
    rag = PreciseRAG(HybridIndex.build(dataset.documents, record.cached_encoder(options)), reader=None)
    sent = sent_by(rag, [asked[name] for name in names])
    whole = sum(len(document.text) for document in dataset.documents)
    groups = [name.rpartition("/")[2] for name in sent.groups]
    return sent._replace(characters=sent.characters / whole, groups=groups)


def row_of(language: str, sent: Sent, english: Sent) -> dict[str, Any]:
    """Return the row of a language, compared with English."""
    redrawn = np.random.default_rng(0).integers(0, len(sent.shares), (_REDRAWN, len(sent.shares)))
    times = sent.characters[redrawn].mean(axis=1) / english.characters[redrawn].mean(axis=1)
    row = {"language": language, "questions": len(sent.shares), **sent.row(english)}
    row |= {"text %": 100 * float(sent.characters.mean())}
    row |= {"times": float(sent.characters.mean() / english.characters.mean())}
    return row | {"least": float(np.quantile(times, 0.025)), "most": float(np.quantile(times, 0.975))}


def main() -> None:
    options = record.parse_arguments(__spec__.name, __doc__, ",".join(LANGUAGES), sample=150).parse_args()
    datasets = {one: read_set(f"dev/xquad/{one}", options.data) for one in options.sets.split(",")}
    names = questions_of(datasets, options.sample)
    rows: list[dict[str, Any]] = []
    english = None
    for language, dataset in datasets.items():
        sent = measure(dataset, names, options)
        english = english or sent
        rows.append(row_of(language, sent, english))
        print(rows[-1], flush=True)
    record.save_rows(
        __spec__.name, options, "evidence/languages", "The same questions in six languages", rows
    )


if __name__ == "__main__":
    main()
