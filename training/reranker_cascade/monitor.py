"""How well a network in training orders documents that were kept out."""

import pickle
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from precise_rag.encoders.sentence_transformer import batches_by_length, fast_precision
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pair_network import CANDIDATE_TOKENS, QUERY_TOKENS, PairNetwork, padded, token_ids
from training.candidate_lists import CandidateList

N_LISTS = 20
"""Lists of each file, at most."""

N_READ = 20
_DISCOUNT = 1.0 / np.log2(np.arange(2, 12))


def monitored(network: PairNetwork, tokenizer: Tokenizer, folder: Path) -> str:
    """Return a line with the mean nDCG@10 of the network's own logits, by file of lists kept out.

    The lists are the candidates that the cascade would read. nDCG@10 knows only what is among them.
    """
    network.eval()
    found = []
    for path in sorted(folder.glob("kept-*-sentences.pickle")):
        lists: list[CandidateList] = pickle.loads(path.read_bytes())[:N_LISTS]
        values = [value for one in lists if (value := _ndcg(network, tokenizer, one)) is not None]
        if values:
            found.append(f"{path.stem.removeprefix('kept-')} {np.mean(values):.3f}")
    network.train()
    return "kept out: " + ", ".join(found)


def _ndcg(network: PairNetwork, tokenizer: Tokenizer, one: CandidateList) -> float | None:
    rows = np.argsort(-packaged_reranker().score(one.question, one.candidates), kind="stable")[:N_READ]
    truth = one.relevant[rows]
    if not truth.any() or truth.all():
        return None
    logits = pair_logits(network, tokenizer, one.question, [one.candidates[row].text for row in rows])
    top = truth[np.argsort(-logits, kind="stable")[:10]]
    return float((top * _DISCOUNT[: len(top)]).sum() / _DISCOUNT[: min(10, int(truth.sum()))].sum())


@torch.inference_mode()
def pair_logits(network: PairNetwork, tokenizer: Tokenizer, query: str, texts: list[str]) -> np.ndarray:
    """Return the network's (n,) logits of texts."""
    out = np.zeros(len(texts), dtype=np.float32)
    ids = token_ids(tokenizer, texts, CANDIDATE_TOKENS)
    with fast_precision("cpu"):
        query_ids, in_query = padded(token_ids(tokenizer, [query], QUERY_TOKENS))
        states = network.encode(query_ids, in_query)
        for rows in batches_by_length(np.array([len(row) for row in ids]), 4_096):
            batch, in_batch = padded([ids[row] for row in rows])
            queries = states.expand(len(rows), -1, -1), in_query.expand(len(rows), -1)
            out[rows] = network.score(*queries, network.encode(batch, in_batch), in_batch).float()
    return out
