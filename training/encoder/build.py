"""Build the training data of the encoder: question sets and weak questions, as token ids.

    python -m training.encoder.build PACKS --data DIR [--rounds N] [--questions N]

PACKS is the folder for the files, one for each question set and each collection of training documents; all of
them together are small enough to be sent elsewhere. Files that are there are left alone. A question comes
with passages that share its words and hold no evidence; the passages of its document are at hand, too.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from zlib import crc32

import numpy as np

from precise_rag.encoders.load import minilm_encoder
from precise_rag.encoders.onnx import OnnxEncoder
from precise_rag.evaluation import Dataset, Evidence, Question
from precise_rag.index import BM25Index
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import passage_ids
from precise_rag.index.arrays.stop_words import load_stop_words
from precise_rag.sentences.tables import build_tables
from precise_rag.types import Document, IntArray
from training.candidate_lists import calibrates, read_set
from training.encoder.network import save_start
from training.encoder.pack import Pack, Texts
from training.kinds import KINDS
from training.question_rules import as_typed
from training.weak_questions import asked_of, collections, documents_of

ALONE = ("fairytaleqa", "qmsum", "friendsqa", "cuad", "tatqa")
"""Sets whose questions make sense in their own document only."""

TURNS = ("fairytaleqa", "qmsum", "friendsqa")
"""Sets whose paragraphs are too short to be passages."""

N_NEAR = 8
SENTENCE_TOKENS, QUESTION_TOKENS = 80, 48
WEAK_QUESTIONS = 300
_STOP_WORDS = load_stop_words("english")


def pack(dataset: Dataset, encoder: OnnxEncoder, random: np.random.Generator) -> Pack:
    """Turn a dataset into arrays."""
    rule = "200 tokens" if dataset.name in TURNS else "paragraphs"
    texts: list[str] = []
    passages: list[IntArray] = []
    owners: list[int] = []
    places: dict[str, tuple[int, IntArray]] = {}
    tables = build_tables(dataset.documents, encoder, vectors=False)
    for number, (document, table) in enumerate(zip(dataset.documents, tables, strict=True)):
        starts = (
            Groups.by_change(passage_ids(document, table, rule)).starts if len(table) else np.zeros(0, int)
        )
        passages.append(starts + len(texts))
        owners += [number] * len(starts)
        places[document.id] = len(texts), table.spans
        texts += [document.text[start:end].strip() for start, end in table.spans.tolist()]
    first = np.append(np.concatenate(passages), len(texts)).astype(np.int32)
    evidence = [gold_sentences(question, places) for question in dataset.questions]
    asked = [q for q, gold in zip(dataset.questions, evidence, strict=True) if len(gold)]
    evidence = [gold for gold in evidence if len(gold)]
    documents = np.array(owners, dtype=np.int32)
    alone = dataset.name in ALONE
    return Pack(
        tokens(encoder, texts, SENTENCE_TOKENS),
        first,
        documents,
        tokens(encoder, [q.text for q in asked], QUESTION_TOKENS),
        tokens(encoder, [retyped(q.text, dataset.name, random) for q in asked], QUESTION_TOKENS),
        np.array([(row, s) for row, gold in enumerate(evidence) for s in gold], dtype=np.int32),
        near_passages(asked, evidence, texts, first, documents, alone=alone),
        alone,
    )


def gold_sentences(question: Question, places: Mapping[str, tuple[int, IntArray]]) -> IntArray:
    """Return the sentences that hold evidence of a question."""
    found = []
    for piece in question.evidence:
        first, spans = places[piece.doc_id]
        low = np.searchsorted(spans[:, 1], piece.start, side="right")
        high = np.searchsorted(spans[:, 0], piece.end, side="left")
        found.append(np.arange(low, high) + first)
    return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)


def tokens(encoder: OnnxEncoder, texts: Sequence[str], limit: int) -> Texts:
    """Tokenize texts without special tokens, at most `limit` of each."""
    found = encoder.tokens(texts)
    return Texts.of([found.ids[low + 1 : high - 1][:limit].tolist() for low, high in pairwise(found.offsets)])


def retyped(text: str, source: str, random: np.random.Generator) -> str:
    """Return a question as somebody might type it: sloppily, or its key words."""
    if source == "cuad":
        named, _, details = text.partition("Details: ")
        name = named.partition('"')[2].partition('"')[0]
        shapes = [f"{name}: {details}", details, name] if name and details else [text]
        return shapes[random.integers(len(shapes))]
    if random.random() < 0.3:
        words = [word for word in text.rstrip("?").split() if word.lower() not in _STOP_WORDS]
        if len(words) > 1:
            return " ".join(words)
    return as_typed(text, random)


def near_passages(
    asked: Sequence[Question],
    evidence: Sequence[IntArray],
    texts: Sequence[str],
    first: IntArray,
    documents: IntArray,
    *,
    alone: bool,
) -> IntArray:
    """Return (n, N_NEAR) passages that BM25 finds and that hold neither evidence nor a known answer.

    alone: whether only passages of the question's document are searched.
    """
    content = [" ".join(texts[low:high]) for low, high in pairwise(first)]
    near = np.full((len(asked), N_NEAR), -1, dtype=np.int32)
    of_sentence = np.repeat(np.arange(len(content)), np.diff(first))
    gold = [np.unique(of_sentence[sentences]) for sentences in evidence]
    scope = documents if alone else np.zeros(len(content), dtype=np.int64)
    for which in np.unique([scope[rows[0]] for rows in gold]):
        members = np.flatnonzero(scope == which)
        part = [Document(str(row), content[row].replace("\n", " ")) for row in members if content[row]]
        index = BM25Index.build(part, chunks="paragraphs")
        for row, question in enumerate(asked):
            if scope[gold[row][0]] != which:
                continue
            answers = [answer.casefold() for answer in question.answers if len(answer) > 3]
            found = [
                int(c.doc_id)
                for c in index.search(question.text, 3 * N_NEAR)
                if int(c.doc_id) not in gold[row] and not any(a in c.text.casefold() for a in answers)
            ][:N_NEAR]
            near[row, : len(found)] = found
    return near


def question_sets(folder: str | None, n_questions: int | None) -> Iterator[Dataset]:
    """Yield the training sets of all kinds, without the documents to measure on."""
    for names in KINDS.values():
        for name in names:
            dataset = read_set(f"train/{name}", folder)
            seen = [document.id for document in dataset.documents if not calibrates(document.id)]
            yield replace(dataset.restrict(seen), name=name).sample(n_questions)


def weak_sets(folder: str | None, n_rounds: int) -> Iterator[Dataset]:
    """Yield weak questions of collections of training documents."""
    for source, number, records in collections(folder, n_rounds):
        random = np.random.default_rng(crc32(f"{source}{number}".encode()))
        asked = [
            Question(str(row), one.question, (Evidence(one.doc_id, one.start, one.end),))
            for row, one in enumerate(asked_of(records, source, WEAK_QUESTIONS, random))
        ]
        if asked:
            yield Dataset(f"weak-{source}-{number:03d}", tuple(documents_of(records)), tuple(asked))


def main() -> None:
    parser = ArgumentParser(prog="python -m training.encoder.build", description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="PACKS")
    parser.add_argument("--data", metavar="DIR", help="folder of the sets (default: PRECISE_DATA)")
    parser.add_argument("--rounds", type=int, default=2, help="collections of each source, times its share")
    parser.add_argument("--questions", type=int, help="of a set, at most; default: all")
    parser.add_argument(
        "--start", type=Path, help="folder for MiniLM's weights in int8, for train.py --start"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.start:
        save_start(options.start)
    encoder = minilm_encoder()
    asked = question_sets(options.data, options.questions)
    for dataset in chain(asked, weak_sets(options.data, options.rounds)):
        path = options.out / f"{dataset.name}.npz"
        if not path.exists():
            made = pack(dataset, encoder, np.random.default_rng(crc32(dataset.name.encode())))
            made.save(path)
            print(
                f"{path.name}: {made.questions.count()} questions, {len(made.documents)} passages", flush=True
            )


if __name__ == "__main__":
    main()
