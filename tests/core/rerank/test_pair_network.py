import numpy as np
import pytest
import torch

from precise_rag import load_encoder
from precise_rag.rerank.pair_network import (
    PairNetwork,
    PairScorer,
    TransformerConfig,
    minilm,
    minilm_pair_network,
    padded,
    token_ids,
)

QUESTION = "Who keeps the lamp of the harbour?"
TEXTS = [
    "Ilse Brandt has kept the lamp of the harbour since the spring.",
    "The lamp is lit at dusk.",
    "Bread prices rose in the valley after the long winter. " * 40,
    "Two ferries cross the river every hour.",
]
CONFIG = TransformerConfig()


def trained(network: PairNetwork) -> dict[str, np.ndarray]:
    """The tensors that a checkpoint holds: all but the embeddings and lower layers."""
    state = network.state_dict()
    return {k: v.numpy() for k, v in state.items() if not k.startswith(("words", "places", "norm", "apart"))}


def test_before_training_and_with_attention_across_shut_the_logit_is_minilms_cosine() -> None:
    network = minilm_pair_network(CONFIG, minilm())
    network.across.data.fill_(-1e4)
    logits = PairScorer(CONFIG, trained(network), "cpu").logits(QUESTION, TEXTS)
    encoder = load_encoder("all-MiniLM-L6-v2")
    cosine = encoder.encode(TEXTS) @ encoder.encode_queries([QUESTION])[0]
    assert logits == pytest.approx(PairNetwork.COSINE * (cosine - 0.5), abs=0.15)


def test_logits_do_not_depend_on_the_other_texts_of_the_batch() -> None:
    scorer = PairScorer(CONFIG, trained(minilm_pair_network(CONFIG, minilm())), "cpu")
    together = scorer.logits(QUESTION, TEXTS)
    assert [scorer.logits(QUESTION, [text])[0] for text in TEXTS] == pytest.approx(together, abs=0.1)


def test_query_and_candidate_are_not_interchangeable() -> None:
    network = minilm_pair_network(CONFIG, minilm())
    torch.manual_seed(0)
    network.across.data.zero_()
    network.sides.data.normal_()
    scorer = PairScorer(CONFIG, trained(network), "cpu")
    assert abs(scorer.logits(TEXTS[0], [TEXTS[1]])[0] - scorer.logits(TEXTS[1], [TEXTS[0]])[0]) > 0.01


def test_padding_is_masked_and_the_width_a_multiple_of_16() -> None:
    ids, is_token = padded([[1, 2, 3], [4] * 17])
    assert ids.shape == is_token.shape == (2, 32)
    assert ids[0, :4].tolist() == [1, 2, 3, 0]
    assert is_token.sum(1).tolist() == [3, 17]


def test_long_texts_are_cut_and_keep_the_token_that_ends_them() -> None:
    tokenizer = minilm().tokenizer
    short, long = token_ids(tokenizer, ["one", "one two three four five"], 4)
    assert (len(short), len(long)) == (3, 4)
    assert short[-1] == long[-1]
