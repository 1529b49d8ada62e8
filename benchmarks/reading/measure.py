"""Measure the packaged reader: exact match and F1 of its answers, given the passage that holds the answer.

    python -m benchmarks.reading.measure --data DIR [--model FOLDER] [--questions N]

Sets: SQuAD (development documents that nothing was trained on), kept-out documents of the trained sets,
and sets that are not trained on at all: TAT-QA (finance), COVID-QA (research articles), XQuAD in German and
Spanish; of each, questions with an answer of at most 120 characters. The passage is the paragraph of the
answer, at most 200 tokens of it. The answer is the likeliest span, however improbable.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.tables import percent
from precise_rag.evaluation.measures.answers import score_answers
from precise_rag.evaluation.measures.statistics import bootstrap_interval
from precise_rag.reading import AnswerReader, read_answer
from training.candidate_lists import calibrates, may_train_on
from training.reader.questions import Paragraph, paragraphs

SETS = {
    "squad": ("dev", "squad", lambda key: not may_train_on(key)),
    "squadshifts": ("train", "squadshifts", calibrates),
    "nq": ("train", "nq", calibrates),
    "afriqa": ("train", "afriqa", calibrates),
    "friendsqa": ("train", "friendsqa", calibrates),
    "tatqa": ("train", "tatqa", lambda key: True),
    "covidqa": ("dev", "covidqa", lambda key: True),
    "xquad/de": ("dev", "xquad/de", lambda key: True),
    "xquad/es": ("dev", "xquad/es", lambda key: True),
}
"""Split and name of each set, and which of its documents are measured on."""

LONGEST = 800
"""Characters of a passage, at most."""


def passage(paragraph: Paragraph, start: int) -> str:
    """Return the paragraph; of a long one, the sentences around the answer that begins there."""
    rows = list(range(len(paragraph.sentences)))
    here = next((row for row in rows if paragraph.sentences[row].end > start), rows[-1])
    first = last = here
    while True:
        more = [(first - 1, last)] if first else []
        more += [(first, last + 1)] if last < rows[-1] else []
        more = [
            (a, b) for a, b in more if paragraph.sentences[b].end - paragraph.sentences[a].start <= LONGEST
        ]
        if not more:
            return paragraph.text[paragraph.sentences[first].start : paragraph.sentences[last].end]
        first, last = min(more, key=lambda ends: abs((here - ends[0]) - (ends[1] - here)))


def measured(name: str, reader: AnswerReader, data: str | None, n_questions: int) -> dict[str, Any]:
    """Return the scores of a sample of the questions of a set, with 95 % intervals."""
    split, stem, taken = SETS[name]
    asked = [
        (question, passage(one, spans[0].start), [one.text[s:e] for s, e in spans])
        for one in paragraphs(split, stem, data, taken)
        for question, spans in one.asked
        if spans
    ]
    drawn = np.random.default_rng(0).permutation(len(asked))[:n_questions]
    answers, started = [], time.process_time()
    for row in drawn:
        found = read_answer(asked[row][0], [asked[row][1]], reader)
        answers.append(found.text if found else "")
    ms = (time.process_time() - started) / len(drawn) * 1e3
    scores = score_answers(answers, [asked[row][2] for row in drawn], ("EM", "F1"))
    intervals = {metric: percent(bootstrap_interval(values)) for metric, values in scores.items()}
    shown = {metric: "{:.1f} ({:.1f} to {:.1f})".format(*interval) for metric, interval in intervals.items()}
    return {"set": name, "questions": len(drawn), "ms": ms, **shown}


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--model", type=Path, help="a saved reader; default: the one in the package")
    parser.add_argument("--questions", type=int, default=300, help="of each set, at most (%(default)s)")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS, metavar="SET")
    options = parser.parse_args()
    reader = AnswerReader(options.model) if options.model else AnswerReader()
    rows = record.printed(measured(name, reader, options.data, options.questions) for name in options.sets)
    record.save_rows(__spec__.name, options, "reading/measure", "Answers of the reader", rows, doc=__doc__)


if __name__ == "__main__":
    main()
