"""Encoding and reranking by us and by sentence-transformers, on the same weights and texts, in turn.

    python -m benchmarks.peers.networks --data DIR [--texts 500] [--questions 5]

Encoding: ours in float32 and int8, the bare ONNX Runtime session of the first on the same batches of tokens,
a whole `HybridIndex.build` of them in documents of 20, and sentence-transformers in float32 (an exported
model: `benchmarks.peers.exported`). Reranking: the cascade's network in int8 and float32, and a stock
CrossEncoder of the same size (a BERT with six layers and random weights, made here), on the same 20 sentences
for each question. CPU seconds of the process, so that other work counts little; the median of three rounds,
one method after the other in each.
"""

import tempfile
import warnings
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.tables import table
from benchmarks.timing import in_turn
from precise_rag import HybridIndex, load_encoder
from precise_rag.documents import read_documents
from precise_rag.encoders.bert_files import float32_folder
from precise_rag.encoders.load import minilm_encoder
from precise_rag.encoders.local import batches_by_length
from precise_rag.encoders.packaged import packaged_minilm
from precise_rag.evaluation import load_development_set
from precise_rag.rerank import CascadeReranker
from precise_rag.rerank.pairs import Piece
from precise_rag.sentences import split_sentences
from precise_rag.types import Document

ROUNDS, N_READ, PER_DOCUMENT = 3, 20, 20


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--texts", type=int, default=500, help="sentences to encode (%(default)s)")
    parser.add_argument("--questions", type=int, default=5, help="to rerank for (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    found = measure(args)
    rows = [
        {"what": name, "CPU s": one["CPU s"], "in a CPU second": f"{one['per CPU s']:,.0f} {one['unit']}"}
        for name, one in found.items()
    ]
    text = f"# Networks on a CPU\n\n{table(rows, '.3f')}"
    record.save("networks", record.made(__spec__.name, args), text)


def measure(args: Namespace) -> dict[str, dict[str, Any]]:
    """CPU seconds of each method."""
    warnings.simplefilter("ignore")
    texts = sentences(args)
    questions = [
        q.text for q in load_development_set("squad", args.data).sample(args.questions, args.seed).questions
    ]
    encoder, read = minilm_encoder(), texts[:N_READ]
    pieces = [Piece(text, before=read[n - 1], after=read[n + 1 - len(read)]) for n, text in enumerate(read)]
    tokens = encoder.tokens(texts).cut(256)
    batches = [tokens.of(rows) for rows in batches_by_length(tokens.lengths, 1024 * encoder.network.threads)]
    cascade, float_cascade = CascadeReranker(device="cpu"), CascadeReranker(device="cpu", precision="float32")
    int8, (stock_encoder, stock_reranker) = load_encoder("int8:all-MiniLM-L6-v2"), stock()
    documents = [
        Document(f"{first}", " ".join(texts[first : first + PER_DOCUMENT]))
        for first in range(0, len(texts), PER_DOCUMENT)
    ]
    ways: dict[str, Callable[[], object]] = {
        "encoding: precise-rag": lambda: minilm_encoder().encode(texts),
        "encoding: precise-rag, int8": lambda: int8.encode(texts),
        "encoding: HybridIndex.build": lambda: HybridIndex.build(documents, minilm_encoder()),
        "encoding: bare session": lambda: [encoder.network.vectors(batch) for batch in batches],
        "encoding: sentence-transformers": lambda: stock_encoder.encode(texts, normalize_embeddings=True),
        "reranking: cascade": lambda: [cascade.logits(question, pieces) for question in questions],
        "reranking: cascade, without the text around": lambda: [
            cascade.logits(question, list(map(Piece, read))) for question in questions
        ],
        "reranking: cascade, float32": lambda: [float_cascade.logits(one, pieces) for one in questions],
        "reranking: CrossEncoder": lambda: [
            stock_reranker.predict([(question, text) for text in read]) for question in questions
        ],
    }
    in_turn(ways, 1)
    counts = {"encoding": (len(tokens.ids), "tokens"), "reranking": (len(questions) * N_READ, "pairs")}
    results = {}
    for name, took in in_turn(ways, ROUNDS).items():
        count, unit = counts[name.partition(":")[0]]
        median = float(np.median([one.cpu for one in took]))
        results[name] = {"CPU s": round(median, 4), "per CPU s": round(count / median, 1), "unit": unit}
    return results


def sentences(args: Namespace) -> list[str]:
    """Sentences of SQuAD's documents."""
    found: list[str] = []
    for document in read_documents(Path(args.data) / "dev_qa_docs_squad.jsonl.gz"):
        text = document.text
        found += [text[span.start : span.end].strip() for span in split_sentences(text)]
        if len(found) >= args.texts:
            break
    return found[: args.texts]


def stock() -> tuple[Any, Any]:
    """all-MiniLM-L6-v2 in sentence-transformers, and a CrossEncoder of its size, both in float32."""
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    config = BertConfig.from_pretrained(str(packaged_minilm()), num_labels=1)
    with tempfile.TemporaryDirectory() as made:
        BertForSequenceClassification(config).save_pretrained(made)
        AutoTokenizer.from_pretrained(str(packaged_minilm())).save_pretrained(made)
        reranker = CrossEncoder(made, device="cpu")
    with float32_folder(packaged_minilm()) as folder:
        return SentenceTransformer(str(folder), device="cpu"), reranker


if __name__ == "__main__":
    main()
