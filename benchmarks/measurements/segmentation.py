"""Sections about chunks and the models that cut them."""

import re

from benchmarks.measurements.results import command_before, newest
from benchmarks.measurements.tables import SIGNS, TITLES, fullest, means, section
from precise_rag.evaluation.report.tables import format_markdown


def chunks() -> str:
    """Chunks with plain dense search."""
    result = newest("segmentation", "segmentation")
    found = means(result)
    parts = ["Which chunks serve plain dense search best?", result.source, SIGNS]
    for sets, table in found.items():
        parts += [f"Mean of {sets}:", format_markdown(*table)]
    by_set = {
        TITLES[name]: {row[0]: row[4].split(" ")[0].strip("*") for row in result.table(f"{name}:")[1]}
        for name in re.findall(r"^## (\S+): ", result.page, re.MULTILINE)
    }
    header, _ = fullest(found)
    everywhere = [row[0] for row in next(iter(found.values()))[1]]
    return section(
        "Chunks",
        [
            *parts,
            f"Recall (%) set by set with {header[4]} tokens:",
            format_markdown(
                ["chunks", *by_set], [[name, *(one[name] for one in by_set.values())] for name in everywhere]
            ),
            "Vectors in context cost no encoding beyond the sentences' "
            "([decision 11](decisions/0011-chunks-in-context.md)). The turns of meetings (QMSum) make very "
            "short chunks.",
        ],
    )


def one_line() -> str:
    """A stock app whose splitter is changed."""
    result, by_words = newest("segmentation", "one-line"), newest("segmentation", "one-line-words")
    return section(
        "One line changed",
        [
            "What happens to a stock app when its splitter is changed to this library's, and nothing else? "
            "Evidence in the chunks that it sends at its own top k, and their tokens; the difference to "
            "stock, with its interval. *In context*: with the vectors in context, by one further argument "
            "([decision 40](decisions/0040-the-whole-chunk-in-its-vector.md)). The encoder reads English, "
            "256 tokens of a chunk; sizes and languages are discussed in "
            "[decision 41](decisions/0041-sizes-in-the-units-of-the-frameworks.md).",
            result.source,
            format_markdown(*result.table()),
            "The same by plain BM25, which reads the whole of a chunk in every language.",
            by_words.source,
            format_markdown(*by_words.table()),
        ],
    )


def models() -> str:
    """The segmentation models."""
    result, measured = newest("segmentation", "models-boundaries"), newest("segmentation", "models")
    header, rows = result.table(nth=1)
    alone = [row for row in rows if row[0] in ("choi", "wiki300")]
    parts = [
        "How well do the segmentation models find the boundaries that authors set, and how fast are they?",
        result.source,
        "Each set counts the same; a method with scores cuts as often as the author did.",
        format_markdown(*result.table()),
        "Two sets alone, Choi's artificially joined documents and the sections of Wikipedia (wiki300):",
        format_markdown(header, alone),
        _larger(measured.page),
        f"Commands on the card of [`small`](models/segmentation-small.md) ({measured.link}).",
        "### Speed, and the features of SAGE's Table X",
        f"Measured in one session; its page describes machine and text ({measured.link}).",
    ]
    wanted = {
        "MB | chunks | MB/s, one process": "`small`, text to chunks with offsets, also with `--processes 2`",
        "MB | chunks | MB/s | MB/s by CPU": "`small`, the same as the text grows",
        "splitter | chunks": "Beside other libraries",
        "device | threads": "`sage-minilm` against its encoder alone on the same tokens",
        "tested on | encoder": "Features: accuracy (%) by how the negatives are drawn",
    }
    for columns, what in wanted.items():
        at = measured.page.index(f"| {columns}")
        table = measured.page[at:].partition("\n\n")[0]
        parts += [f"{what}, `{command_before(measured.page, f'| {columns}')}`:", table.rstrip()]
    pairs, languages = newest("segmentation", "table-x"), newest("segmentation", "languages")
    parts += [
        "The same pairs, by the packaged models, alone and with up to 16 sentences on either side:",
        pairs.source,
        format_markdown(*pairs.table()),
        "Sentences and cuts in other languages; the full result explains the columns, and that of the "
        "boundaries, above, has the areas under the curve by language.",
        languages.source,
        format_markdown(*languages.table()),
    ]
    parts.append(
        "With the structure of the text read, too, beside other work on both cores, so that MB/s CPU "
        "counts. A megabyte of one-character sentences or of headings of one letter has 250,000 sentences "
        "and more, prose about 8,000: for each sentence these texts are cut faster than prose."
    )
    for name in ("speed", "speed-nasty"):
        again = newest("segmentation", name)
        parts += [again.source, format_markdown(*again.table())]
    parts.append(
        "The cards of [`small`](models/segmentation-small.md) and "
        "[`sage-minilm`](models/segmentation-sage-minilm.md) give their areas under the curve by domain."
    )
    return section("Segmentation models", parts)


def _larger(page: str) -> str:
    """The paragraph about larger samples, with its table."""
    paragraph, table = page[page.index("Larger samples") :].split("\n\n")[:2]
    return f"{paragraph}\n\n{table}"
