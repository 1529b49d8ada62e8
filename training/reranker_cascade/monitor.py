"""How well a network in training orders documents that were kept out."""

from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from precise_rag.encoders.sentence_transformer import batches_by_length, fast_precision
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pair_network import CANDIDATE_TOKENS, QUERY_TOKENS, PairNetwork, padded, token_ids
from training.candidate_lists import CandidateList
from training.reranker_cascade.build import kept_lists

N_LISTS = 8
"""Lists of each set, at most."""

N_READ = 20
_DISCOUNT = 1.0 / np.log2(np.arange(2, 12))


def monitored(network: PairNetwork, tokenizer: Tokenizer, folder: Path) -> str:
    """Return a line with the mean nDCG@10 of the network's own logits, of sentences kept out, by set.

    The lists are the candidates that the cascade would read. nDCG@10 knows only what is among them.
    """
    network.eval()
    found = {}
    for name, lists in kept_lists(folder, "sentences").items():
        values = (_ndcg(network, tokenizer, one) for one in lists[:N_LISTS])
        if known := [value for value in values if value is not None]:
            found[name] = np.mean(known)
    network.train()
    by_set = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    return f"kept out: {np.mean(list(found.values() or [0])):.4f}; {by_set}"


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
    device = network.head.weight.device
    with fast_precision(device.type):
        query_ids, in_query = on(device, padded(token_ids(tokenizer, [query], QUERY_TOKENS)))
        states = network.encode(query_ids, in_query)
        for rows in batches_by_length(np.array([len(row) for row in ids]), 4_096):
            batch, in_batch = on(device, padded([ids[row] for row in rows]))
            queries = states.expand(len(rows), -1, -1), in_query.expand(len(rows), -1)
            out[rows] = network.score(*queries, network.encode(batch, in_batch), in_batch).float().cpu()
    return out


def on(device: torch.device, batch: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a padded batch on a device."""
    ids, is_token = batch
    return ids.to(device), is_token.to(device)
