"""The page docs/measurements.md and the table in README.md, and whether they are up to date."""

from pathlib import Path

from benchmarks.measurements.adoption import adoption
from benchmarks.measurements.evidence import evidence
from benchmarks.measurements.papers import feedback, papers
from benchmarks.measurements.reranking import reranking
from benchmarks.measurements.search import building, default, parts, peers, readme_table, recursive, scale
from benchmarks.measurements.segmentation import chunks, models, one_line
from benchmarks.measurements.speed import speed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "measurements.md"
README = ROOT / "README.md"
OPENING, CLOSING = "<!-- measurements -->", "<!-- /measurements -->"

SECTIONS = (
    peers,
    adoption,
    speed,
    parts,
    default,
    building,
    recursive,
    scale,
    chunks,
    one_line,
    models,
    reranking,
    evidence,
    feedback,
    papers,
)

_HEAD = """\
# Measurements

<!-- Written by `python -m benchmarks.measurements`; change the results or that module, not this page. -->

Every figure on this page comes from a file in `benchmarks/*/results/`. Each section gives the command, the
date and the machine, and links the full result with intervals, versions and seeds. `DIR` is the folder of the
question sets that the [evaluation guide](guides/evaluation.md#benchmarks) describes; install with
`pip install -e '.[all,peers]' --group test` first. All runs were on CPUs: nothing was measured on a GPU.

*Recall* is the share of a question's evidence, in characters, within the tokens that are sent to the language
model; columns headed by a number give it for so many tokens.
"""


def compose() -> str:
    """The whole page."""
    return "\n\n".join([_HEAD.rstrip(), *(section() for section in SECTIONS)]) + "\n"


def out_of_date() -> list[str]:
    """The files that differ from what the results give, each with what to do."""
    found = []
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != compose():
        found.append(f"{PAGE.relative_to(ROOT)} is out of date; run python -m benchmarks.measurements")
    _, marked, rest = README.read_text(encoding="utf-8").partition(OPENING)
    if marked and rest.partition(CLOSING)[0].strip() != readme_table():
        found.append(
            "README.md is out of date; put in what python -m benchmarks.measurements --readme prints"
        )
    return found
