"""Encoding and reranking by us and by sentence-transformers, on the same weights and texts, in turn.

    python -m benchmarks.peers.networks --data DIR [--texts 500] [--questions 5]

Encoding: ours, its bare ONNX Runtime session on the same batches of tokens, and sentence-transformers in
float32. Reranking: the cascade's network, and a stock CrossEncoder of the same size (a BERT with six layers
and random weights, made here), on the same 20 sentences for each question. CPU seconds of the process, so
that other work on the machine counts little; the median of three rounds, one method after the other in each.
"""

import tempfile
import time
import warnings
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from precise_rag.documents import read_documents
from precise_rag.encoders.load import minilm_encoder
from precise_rag.encoders.local import batches_by_length
from precise_rag.encoders.packaged import packaged_minilm
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.rerank import load_reranker
from precise_rag.sentences import split_sentences

ROUNDS, N_READ = 3, 20


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--texts", type=int, default=500, help="sentences to encode (%(default)s)")
    parser.add_argument("--questions", type=int, default=5, help="to rerank for (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    found = measure(args)
    rows = [
        [name, f"{one['CPU s']:.3f}", f"{one['per CPU s']:,.0f} {one['unit']}"] for name, one in found.items()
    ]
    text = ["# Networks on a CPU", format_markdown(["what", "CPU s", "in a CPU second"], rows)]
    record.save("peers", "networks", record.made(__spec__.name, args), "\n\n".join(text), {"results": found})


def measure(args: Namespace) -> dict[str, dict[str, Any]]:
    """CPU seconds of each method."""
    warnings.simplefilter("ignore")
    texts = sentences(args)
    questions = [
        q.text for q in load_development_set("squad", args.data).sample(args.questions, args.seed).questions
    ]
    encoder, read = minilm_encoder(), texts[:N_READ]
    tokens = encoder.tokens(texts).cut(256)
    batches = [tokens.of(rows) for rows in batches_by_length(tokens.lengths, 1024 * encoder.network.threads)]
    cascade, (stock_encoder, stock_reranker) = load_reranker("cascade", "cpu"), stock()
    ways: dict[str, Callable[[], object]] = {
        "encoding: precise-rag": lambda: minilm_encoder().encode(texts),
        "encoding: bare session": lambda: [encoder.network.vectors(batch) for batch in batches],
        "encoding: sentence-transformers": lambda: stock_encoder.encode(texts, normalize_embeddings=True),
        "reranking: cascade": lambda: [cascade.logits(question, read) for question in questions],
        "reranking: CrossEncoder": lambda: [
            stock_reranker.predict([(question, text) for text in read]) for question in questions
        ],
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for work in ways.values():
        work()
    for _ in range(ROUNDS):
        for name, work in ways.items():
            started = time.process_time()
            work()
            spent[name].append(time.process_time() - started)
    counts = {"encoding": (len(tokens.ids), "tokens"), "reranking": (len(questions) * N_READ, "pairs")}
    results = {}
    for name, seconds in spent.items():
        count, unit = counts[name.partition(":")[0]]
        median = float(np.median(seconds))
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

    folder = str(packaged_minilm())
    config = BertConfig.from_pretrained(folder, num_labels=1)
    with tempfile.TemporaryDirectory() as made:
        BertForSequenceClassification(config).save_pretrained(made)
        AutoTokenizer.from_pretrained(folder).save_pretrained(made)
        reranker = CrossEncoder(made, device="cpu")
    return SentenceTransformer(folder, device="cpu"), reranker


if __name__ == "__main__":
    main()
