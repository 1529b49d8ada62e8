"""Sections about what is found: peers, parts, plain searches, indexes."""

from benchmarks.measurements.results import FULL, newest
from benchmarks.measurements.tables import SIGNS, TITLES, fullest, means, section, titled
from precise_rag.evaluation.report.tables import format_markdown

OURS = {
    "recursive 200, BM25 + dense": "recursive splitter, BM25 + dense",
    "precise Hybrid": "precise-rag: `HybridIndex`",
    "precise whole path": "precise-rag: the whole path",
    "precise as it comes": "precise-rag: `PreciseRAG` as it comes",
}
"""Pipelines of README's table beside the best of LangChain and LlamaIndex, and their labels."""


def readme_table() -> str:
    """The best pipelines of LangChain and LlamaIndex, plain hybrid search, and ours, for README.md.

    Which are the best says the run of all pipelines; the figures are those of the newest run of these few.
    """
    _, every = fullest(means(newest("peers", "peers")))
    header, rows = fullest(means(newest("peers", "peers-few")))
    wanted = [*range(1, 5), header.index("kept tokens")]
    cells = {row[0]: [row[column].removesuffix(" +").removesuffix(" -") for column in wanted] for row in rows}

    def recall(row: list[str]) -> float:
        return sum(float(cell.strip("*+- ")) for cell in row[1:5])

    libraries = ("LangChain", "LlamaIndex")
    best = [max((row for row in every if row[0].startswith(library)), key=recall)[0] for library in libraries]
    labels = {name: f"{name} (best of {library})" for name, library in zip(best, libraries, strict=True)}
    body = [[label, *cells[name]] for name, label in {**labels, **OURS}.items()]
    return format_markdown(["pipeline", *(header[column] for column in wanted)], body)


def peers() -> str:
    """Other libraries and ours."""
    result, speed, llm = newest("peers", "peers"), newest("peers", "speed"), newest("peers", "llm-rerank")
    parts = [
        "How much of the evidence arrives with other libraries and with ours, the encoder being the same?",
        result.source,
        f"{SIGNS} *As it comes* is what `PreciseRAG.from_documents(documents).retrieve(question)` returns.",
    ]
    few = newest("peers", "peers-few")
    for sets, table in means(result).items():
        parts += [f"Mean of {sets}:", format_markdown(*table)]
    parts.append(f"A few of them again, with the default path as it is now: {few.source}")
    parts += [format_markdown(*table) for table in means(few).values()]
    return section(
        "Against what people use",
        [
            *parts,
            f"![Recall against tokens]({FULL}/peers/results/{result.name}-{result.date}.svg?raw=true)",
            "### Time and memory",
            f"{speed.source} One thread, CPU times, nothing cached.",
            format_markdown(*speed.table()),
            "### LlamaIndex LLMRerank",
            llm.source,
            "Recall (%) by tokens sent, and what ranking asks of a language model for one question. The "
            "judge that is never wrong knows the evidence; the judge that cannot tell keeps the order of the "
            "search.",
            format_markdown(*llm.table()),
        ],
    )


def parts() -> str:
    """What each part buys."""
    result = newest("ablation", "ablation")
    header, rows = result.table("What each part")
    wanted = [i for i, name in enumerate(header) if "@" not in name]
    (sets,) = means(result)
    return section(
        "What each part buys",
        [
            "How many points of recall does a part gain when it is switched on and the rest stays?",
            result.source,
            f"Mean of {sets}, by tokens sent; ± is half of the 95 % interval; bold: significant in a paired "
            "test. The last columns are what the part costs: tokens of all that is kept, and milliseconds a "
            "question.",
            format_markdown([header[i] for i in wanted], [[row[i] for i in wanted] for row in rows]),
        ],
    )


def default() -> str:
    """One default against plain searches."""
    result, checks = newest("retrieval", "recall"), newest("retrieval", "recall-checks-plain-hybrid")
    budgets = " / ".join(result.table("hotpotqa")[0][1:])
    return section(
        "One default against the best plain searches",
        [
            "Does `HybridIndex`, unchanged, reach the plain search that is best on a set in hindsight? Plain "
            "searches are dense, BM25 and both, over chunks of two sizes.",
            result.source,
            f"Recall (%) with {budgets} tokens; bold: the interval of the difference excludes zero.",
            titled(result.table()),
            "Where the encoder does not know the language, the dense scores count less by themselves "
            "([decision 13](decisions/0013-adaptive-dense-weight.md)). Plain BM25 finds no words in Chinese.",
            "### Questions that no setting was chosen on",
            checks.source,
            titled(checks.table()),
            "Headings ask for their section, and the title of an article for its first paragraph. A bare "
            "name gives BM25 little to tell passages apart by "
            "([decision 8](decisions/0008-scored-and-returned-unit.md)).",
        ],
    )


def building() -> str:
    """What an index costs to build."""
    result = newest("retrieval", "build")
    return section(
        "Cost of the index",
        [
            "What does an index cost to build, against plain dense indexing of the same text?",
            result.source,
            format_markdown(*result.table()),
        ],
    )


def recursive() -> str:
    """Words first, then sentence vectors."""
    result = newest("papers", "recursive")
    measures = ("Hits@1", "Hits@3", "Hits@10", "MRR@10")
    body = [
        [
            f"{TITLES.get(name, name)} ({one['sentences']:,}), {method}",
            *(f"{row[measure]:.3f}" for measure in measures),
            f"{row['compared %']:.1f}",
            f"{row['questions/s']:,.0f}",
        ]
        for name, one in result.data["results"].items()
        for method, row in one.items()
        if isinstance(row, dict) and measures[0] in row
    ]
    header, rows = result.table()
    columns = [0, *map(header.index, (*measures, "compared (%)", "questions/s"))]
    body += [[row[column] for column in columns] for row in rows if row[0].startswith("paper:")]
    return section(
        "Word, then sentence",
        [
            "What is gained by comparing only the sentences that share words with the question?",
            result.source,
            "In brackets: the sentences of the collection. *naive* compares all vectors. Questions a second "
            "are without encoding the question.",
            format_markdown([header[column] for column in columns], body),
        ],
    )


def scale() -> str:
    """The indexes at a large size."""
    columns = ("kind", "build s", "vectors MB", "p50 ms", "p95 ms", "recall@10")
    parts = ["How fast and how exact are the indexes at a large size?"]
    for name in ("scale-1000000", "scale-real"):
        result = newest("retrieval", name)
        parts += [
            f"### {result.data['sentences']:,} sentences: {result.data['what']}",
            result.source,
            format_markdown(columns, [[str(row[c]) for c in columns] for row in result.data["rows"]]),
        ]
    parts.append(
        "Building is without encoding; latency is one query whose vector is known; recall@10 is against the "
        "same search in float32. The kinds with IVF and HNSW are faiss; *context* is `SentenceContextIndex`."
    )
    return section("A million sentences", parts)
