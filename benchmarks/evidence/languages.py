"""What the pipeline sends for the same questions in six languages.

    python -m benchmarks.evidence.languages --data DIR [--vectors FILE] [--sample N]

Questions and paragraphs of XQuAD, translated by people; nothing was trained on them. "evidence": share of the
marked evidence that is sent. "tokens": what is sent on average, in tokens of the packaged encoder, which cuts
other languages into more pieces than English. "text": the same as a share of all documents' characters, which
are the same text in each language. "more": of this share over English.
"""

from argparse import Namespace
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.evidence.measure import covered
from precise_rag import HybridIndex, PreciseRAG
from precise_rag.evaluation.report.tables import format_markdown
from training.candidate_lists import cached_encoder, read_set

LANGUAGES = ("en", "de", "es", "ru", "ar", "zh")
N_DOCUMENTS = 8


def measure(language: str, options: Namespace) -> dict[str, Any]:
    """Return the row of a language."""
    dataset = read_set(f"dev/xquad/{language}", options.data)
    ids = sorted(document.id for document in dataset.documents)[:N_DOCUMENTS]
    dataset = dataset.restrict(ids)
    asked = dataset.sample(options.sample, seed=1).questions
    rag = PreciseRAG(HybridIndex.build(dataset.documents, cached_encoder(options.vectors)))
    shares, tokens, characters = [], [], []
    for question in asked:
        kept = rag.retrieve(question.text).kept
        shares.append(covered(kept, question) / sum(e.end - e.start for e in question.evidence))
        tokens.append(sum(c.n_tokens or 0 for c in kept))
        characters.append(sum(c.end - c.start for c in kept))
    whole = sum(len(document.text) for document in dataset.documents)
    return {
        "language": language,
        "questions": len(asked),
        "evidence %": 100 * float(np.mean(shares)),
        "tokens": float(np.mean(tokens)),
        "text %": 100 * float(np.mean(characters)) / whole,
    }


def main() -> None:
    options = record.parse_arguments(__spec__.name, __doc__, ",".join(LANGUAGES), sample=30).parse_args()
    rows = []
    for language in options.sets.split(","):
        rows.append(measure(language, options))
        rows[-1]["more %"] = 100 * (rows[-1]["text %"] / rows[0]["text %"] - 1)
        print(rows[-1], flush=True)
    body = [[f"{v:.1f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    table = format_markdown(list(rows[0]), body)
    made = record.made(__spec__.name, options)
    record.save(
        "evidence", "languages", made, f"# The same questions in six languages\n\n{table}", {"rows": rows}
    )


if __name__ == "__main__":
    main()
