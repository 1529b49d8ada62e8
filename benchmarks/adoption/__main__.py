"""What a model reads in a stock application, and after one line of the migration page.

    python -m benchmarks.adoption --data DIR [--sets documentation,squad] [--sample 75] [--characters 100000]

Files in a folder, read by LlamaIndex's SimpleDirectoryReader, or as UTF-8 for LangChain, whose packages here
have no reader. LlamaIndex embeds the path of a file with each stock chunk, so the folder has a fixed name.
Each framework with its defaults: SentenceSplitter() and similarity_top_k 2, or
RecursiveCharacterTextSplitter() and k 4, a vector store with the default encoder; RetrieverQueryEngine and
create_stuff_documents_chain write the prompt. Documentation: `benchmarks/adoption/documentation.py`. The
other sets: documents that no model of ours was trained on, in seeded order up to --characters.

evidence: share of the evidence that is in the pieces, mean over questions; of documentation, 1 if all
passages of the answer are in the prompt. one piece: share of the questions whose whole answer is in one of
the pieces, as written, with what stands above it there; first: in the first piece. tokens: those of the
prompt less those of one without a piece, as OpenAI's cl100k_base counts. of stock: the tokens in percent of
those that the stock application needs for the same evidence by a larger number of pieces, up to 30,
interpolated; "-" if it never gets there.
"""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.adoption.apps import TOP_K, K, Line, Sent, langchain, llamaindex
from benchmarks.adoption.documentation import plain, read_questions, write_documents
from benchmarks.harness.datasets import Evidence, held_out
from benchmarks.harness.evidence import covered
from benchmarks.harness.tables import about, cached_encoder, save, sets_parser, table
from precise_rag.rerank import load_reranker

MODULE = "benchmarks.adoption"


class Asked(NamedTuple):
    """A question. passages: of its answer. evidence: where they are; empty if only the words are known."""

    question: str
    passages: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()


def main() -> None:
    parser = sets_parser(MODULE, __doc__, "documentation", sample=75)
    parser.add_argument("--characters", type=int, default=100_000, help="of a set's documents (%(default)s)")
    args = parser.parse_args()
    encoder, reranker = cached_encoder(args), load_reranker("default")
    parts, every = [], defaultdict(list)
    for name in args.sets.split(","):
        folder = Path(tempfile.gettempdir(), f"precise-{name}").resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        asked = prepared(name, folder, args)
        texts = {str(path): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}
        rows: list[dict[str, Any]] = []
        for framework in (llamaindex, langchain):
            found = []
            for line in framework(folder, encoder, reranker):
                found.append((line, mean([measured(line.ask(one.question), one, texts) for one in asked])))
                print(name, line.app, line.code, found[-1][1], flush=True)
            rows += summary(found)
            every[framework].append(found)
        parts += [f"## {name}, {len(asked)} questions", table(rows)]
    rows = []
    for sets in every.values():
        rows += summary([(lines[0][0], mean([v for _, v in lines])) for lines in zip(*sets, strict=True)])
    parts += [f"## Mean of {args.sets}", table(rows)]
    save("adoption", MODULE, args, "One line of the migration page", about(__doc__), *parts)


def prepared(name: str, folder: Path, args: Any) -> list[Asked]:
    """Write the documents of a set into a folder; return the questions about them."""
    if name == "documentation":
        names = set(write_documents(folder))
        questions = [Asked(one.question, one.answer) for one in read_questions() if one.document in names]
        chosen = np.random.default_rng(args.seed).permutation(len(questions))[: args.sample]
        return [questions[place] for place in sorted(chosen.tolist())]
    documents, questions_about = held_out(name, args)
    texts = {document.id: document.text for document in documents}
    files = {key: folder / f"{number}.txt" for number, key in enumerate(texts)}
    for key, file in files.items():
        file.write_bytes(texts[key].encode("utf-8"))
    return [
        Asked(
            q.text,
            tuple(texts[e.doc_id][e.start : e.end] for e in q.evidence),
            tuple(e._replace(doc_id=str(files[e.doc_id])) for e in q.evidence),
        )
        for q in questions_about
    ]


def measured(sent: Sent, asked: Asked, texts: Mapping[str, str]) -> dict[str, float]:
    """What one prompt is worth; texts: of the files as read."""
    wanted = [plain(passage) for passage in asked.passages]
    answered = [all(passage in plain(piece.written) for passage in wanted) for piece in sent.pieces]
    whole = plain(sent.prompt)
    spans = [
        Evidence(piece.file, start, start + len(piece.text))
        for piece in sent.pieces
        if (start := texts[piece.file].find(piece.text)) >= 0
    ]
    in_prompt = float(all(passage in whole for passage in wanted))
    return {
        "evidence": covered(asked.evidence, spans) if asked.evidence else in_prompt,
        "one piece": float(any(answered)),
        "first": float(answered[:1] == [True]),
        "pieces": len(sent.pieces),
        "tokens": sent.tokens,
    }


def mean(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each measure over the questions."""
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


def summary(found: Sequence[tuple[Line, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """The lines of one application as rows: of the stock ones that with the default number alone."""
    stock = [values for line, values in found if line.nearest is not None]
    rows = []
    for line, values in found:
        if line.nearest in (None, TOP_K if line.app == "LlamaIndex" else K):
            needed = tokens_for(values["evidence"], stock)
            row = {"app": line.app, "line": line.code}
            row |= {f"{key} (%)": 100 * values[key] for key in ("evidence", "one piece", "first")}
            row |= {"pieces": values["pieces"], "tokens": round(values["tokens"])}
            rows.append(row | {"of stock (%)": round(100 * values["tokens"] / needed) if needed else "-"})
    return rows


def tokens_for(evidence: float, stock: Sequence[Mapping[str, float]]) -> float | None:
    """The tokens with which the stock application sends so much of the evidence; None if it never does."""
    reached = np.maximum.accumulate([values["evidence"] for values in stock]).round(6)
    shares, first = np.unique(reached, return_index=True)
    if evidence > shares[-1] + 1e-6 or evidence <= 0:
        return None
    tokens = [stock[place]["tokens"] for place in first]
    return float(np.interp(evidence, [0.0, *shares], [0.0, *tokens]))


if __name__ == "__main__":
    main()
