"""Time against size, for texts and lists that are made to be slow.

An exponent of 1 means that twice the size takes twice the time; 2 means four times. Texts are repeated
strings; lists are candidates of one document, equal texts, or texts that differ in a number. Sizes after
one that takes over a second are left out.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.tables import table
from precise_rag import Candidate, Document, RedundancyFilter, Segmenter
from precise_rag.candidate_filters.relevance_parsing import parse_scores
from precise_rag.errors import PreciseRagError
from precise_rag.feedback.judgement import parse_judgement
from precise_rag.rerank import load_reranker
from precise_rag.segmentation.boundaries import choose_cuts
from precise_rag.sentences import load_sentence_splitter
from precise_rag.viz.segmentation_page import segmentation_page
from precise_rag.viz.segmentation_terminal import segmentation_lines

TEXTS = {
    "?!": "?!",
    "CJK verse": "天地玄黃。",
    "abbreviations": "Mr. ",
    "initials": "J.R.",
    "sentences": "He left. ",
    "quotes": "“.” ",
    "brackets": "(.",
    "line ends": "\n",
    "list": "\n- a",
    "combining marks": "a\u0301",
    "emoji": "👩\u200d👧",
    "zero width": "\u200b",
    "one word": "a",
    "digits": "1",
    "two scripts": "abc天地。",
}
SPLITTERS = ("auto", "sentencex", "punkt")
FEW = ("?!", "CJK verse", "sentences", "one word", "combining marks")
SLOW = 1.0
"""Seconds; after a size that takes longer, larger ones are left out."""

QUESTION = "Who keeps the lamp of the harbour?"
SENTENCE = "The lamp of the harbour is kept by Ilse Brandt. "


Run = Callable[[int], Callable[[], object]]
"""From a size to what is timed."""


class Case(NamedTuple):
    """What is measured: the part, the input, the unit of its size, and a run at a size."""

    part: str
    given: str
    unit: str
    run: Run


def repeated(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def cases() -> Iterator[Case]:
    for name in SPLITTERS:
        try:
            splitter = load_sentence_splitter(name)
        except PreciseRagError as error:
            print(f"left out: {error}")
            continue
        for given, unit in TEXTS.items():
            yield Case(f"splitting, {name}", given, "characters", text_case(splitter.split, unit))
    segmenter = Segmenter.from_pretrained("small")
    for given in FEW:
        yield Case("segmentation, small", given, "characters", text_case(segmenter.segment, TEXTS[given]))
    yield Case("lines and page of inspect", "sentences", "characters", inspect_case(segmenter))
    yield Case("choice of cuts", "sentences without tokens", "sentences", cuts_case)
    yield from rerank_cases()
    yield from filter_cases()
    yield from reply_cases()


def text_case(use: Callable[[str], object], unit: str) -> Run:
    return lambda size: partial(use, repeated(unit, size))


def inspect_case(segmenter: Segmenter) -> Run:
    def draw(document: Document, found: Any) -> None:
        for _ in segmentation_lines(document, found, segmenter.options):
            pass
        segmentation_page(document, found, segmenter.options)

    def run(size: int) -> Callable[[], object]:
        document = Document("d", repeated(TEXTS["sentences"], size))
        return partial(draw, document, segmenter.explain(document))

    return run


def cuts_case(size: int) -> Callable[[], object]:
    gains, counts = np.ones(size - 1, dtype=np.float32), np.zeros(size, dtype=np.int64)
    return lambda: choose_cuts(gains, counts, max_tokens=100, min_tokens=50)


def candidates(texts: list[str], places: list[int], one_document: bool = False) -> list[Candidate]:
    return [
        Candidate("d" if one_document else f"d{i}", place, place + len(text), text, 1.0 - i * 1e-6, "rank")
        for i, (text, place) in enumerate(zip(texts, places, strict=True))
    ]


def rerank_cases() -> Iterator[Case]:
    score = load_reranker("packaged").score

    def one_text(size: int) -> Callable[[], object]:
        return partial(score, QUESTION, candidates([repeated("lamp harbour " * 9, size)], [0]))

    def one_document(step: int) -> Run:
        return lambda size: partial(
            score, QUESTION, candidates([SENTENCE] * size, [step * i for i in range(size)], one_document=True)
        )

    yield Case("packaged reranker", "one repetitive text", "characters", one_text)
    yield Case("packaged reranker", "pieces of one document", "candidates", one_document(40))
    yield Case("packaged reranker", "overlapping pieces", "candidates", one_document(0))


def filter_cases() -> Iterator[Case]:
    def filtered(text_of: Callable[[int], str], one: bool) -> Run:
        return lambda size: partial(
            RedundancyFilter().filter,
            candidates([text_of(i) for i in range(size)], [100 * i for i in range(size)], one),
        )

    words = [f"word{chr(97 + i)}" for i in range(20)]
    random = np.random.default_rng(0)
    texts: tuple[tuple[str, Callable[[int], str], bool], ...] = (
        ("equal texts", lambda i: SENTENCE * 3, False),
        ("another number each", lambda i: f"{SENTENCE * 3}{i}", True),
        ("few words, many orders", lambda i: " ".join(random.choice(words, 12)), False),
    )
    for given, text_of, one in texts:
        yield Case("redundancy filter", given, "candidates", filtered(text_of, one))


def reply_cases() -> Iterator[Case]:
    replies = {
        "score 000…0-1": lambda size: f"score {'0' * size}-1",
        "score 1…1 and spaces": lambda size: f"score {'1' * (size // 2)}{' ' * (size // 2)}-1",
        '{"a":{"a":…': lambda size: repeated('{"a":', size),
        '{"a":{"b":1},…': lambda size: repeated('{"a":{"b":1},', size),
        "{{{…": lambda size: "{" * size,
        "900 levels and a text": lambda size: '{"a":' * 900 + '"' + "x" * size,
    }
    readers = {"judge's reply": parse_judgement, "relevance reply": partial(parse_scores, ids={"1"})}
    for given, text_of in replies.items():
        for part, read in readers.items():
            yield Case(part, given, "characters", lambda size, t=text_of, r=read: partial(r, t(size)))


def seconds(run: Callable[[], object]) -> float:
    """The better of two runs; one if it takes long."""
    times: list[float] = []
    while len(times) < 2 and sum(times) < 1.0:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def exponent(sizes: list[int], times: list[float]) -> float | None:
    """Slope of log time against log size, over the sizes that take a millisecond or more."""
    slow = [(size, took) for size, took in zip(sizes, times, strict=True) if took >= 1e-3]
    if len(slow) < 2:
        return None
    x, y = np.log(np.array(slow)).T
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__, data=False)
    parser.add_argument("--sizes", default="10000,100000,1000000", help="of texts (%(default)s)")
    parser.add_argument("--counts", default="1000,3000,10000", help="of lists (%(default)s)")
    parser.add_argument("--part", default="", help="only parts whose name begins so")
    args = parser.parse_args()
    rows = []
    for case in cases():
        if not case.part.startswith(args.part):
            continue
        sizes = [int(size) for size in (args.counts if case.unit == "candidates" else args.sizes).split(",")]
        times: list[float] = []
        for size in sizes:
            if not times or times[-1] < SLOW:
                times.append(seconds(case.run(size)))
        sizes = sizes[: len(times)]
        rows.append({**case._asdict(), "sizes": sizes, "seconds": times, "exponent": exponent(sizes, times)})
        del rows[-1]["run"]
        print(case.part, case.given, [round(took, 4) for took in times], flush=True)
    shown = [
        {
            "part": row["part"],
            "given": f"`{row['given']}`",
            "size": f"{' / '.join(f'{size:,}' for size in row['sizes'])} {row['unit']}",
            "seconds": " / ".join(f"{took:.3f}" for took in row["seconds"]),
            "exponent": "under 1 ms" if row["exponent"] is None else f"{row['exponent']:.2f}",
        }
        for row in rows
    ]
    text = f"# Time against size\n\n{' '.join((__doc__ or '').splitlines()[2:])}\n\n{table(shown)}"
    record.save("reliability", "growth", record.made(__spec__.name, args), text, {"rows": rows})


if __name__ == "__main__":
    main()
