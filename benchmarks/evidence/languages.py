"""What the pipeline sends for the same questions in six languages.

    python -m benchmarks.evidence.languages --data DIR [--vectors FILE] [--sample N]

Questions and paragraphs of XQuAD, translated by people; nothing was trained on them. "evidence": share of the
marked evidence that is sent. "tokens": what is sent on average, in tokens of the packaged encoder, which cuts
other languages into more pieces than English. "text": the same as a share of all documents' characters, which
are the same text in each language. "more": of this share over English.
"""

from argparse import Namespace
from typing import Any

from benchmarks import record
from benchmarks.sent import sent_by
from precise_rag import HybridIndex, PreciseRAG
from training.candidate_lists import read_set

LANGUAGES = ("en", "de", "es", "ru", "ar", "zh")
N_DOCUMENTS = 8


def measure(language: str, options: Namespace) -> dict[str, Any]:
    """Return the row of a language."""
    dataset = read_set(f"dev/xquad/{language}", options.data)
    dataset = dataset.restrict(sorted(document.id for document in dataset.documents)[:N_DOCUMENTS])
    asked = dataset.sample(options.sample, seed=1).questions
    sent = sent_by(PreciseRAG(HybridIndex.build(dataset.documents, record.cached_encoder(options))), asked)
    whole = sum(len(document.text) for document in dataset.documents)
    return {
        "language": language,
        "questions": len(asked),
        "evidence %": 100 * float(sent.shares.mean()),
        "tokens": float(sent.tokens.mean()),
        "text %": 100 * float(sent.characters.mean()) / whole,
    }


def main() -> None:
    options = record.parse_arguments(__spec__.name, __doc__, ",".join(LANGUAGES), sample=30).parse_args()
    rows = []
    for language in options.sets.split(","):
        rows.append(measure(language, options))
        rows[-1]["more %"] = 100 * (rows[-1]["text %"] / rows[0]["text %"] - 1)
        print(rows[-1], flush=True)
    record.save_rows(
        __spec__.name, options, "evidence/languages", "The same questions in six languages", rows
    )


if __name__ == "__main__":
    main()
