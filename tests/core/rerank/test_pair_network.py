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
from precise_rag.rerank.pairs import CANDIDATE_TOKENS, Piece, tokens_of_pieces

QUESTION = "Who keeps the lamp of the harbour?"
TEXTS = [
    "Ilse Brandt has kept the lamp of the harbour since the spring.",
    "The lamp is lit at dusk.",
    "Bread prices rose in the valley after the long winter. " * 40,
    "Two ferries cross the river every hour.",
]
PIECES = [Piece(text) for text in TEXTS]
CONFIG = TransformerConfig()


def trained(network: PairNetwork) -> dict[str, np.ndarray]:
    """The tensors that a checkpoint holds: all but the embeddings and lower layers."""
    state = network.state_dict()
    return {k: v.numpy() for k, v in state.items() if not k.startswith(("words", "places", "norm", "apart"))}


def test_before_training_and_with_attention_across_shut_the_logit_is_minilms_cosine() -> None:
    network = minilm_pair_network(CONFIG, minilm())
    network.across.data.fill_(-1e4)
    logits = PairScorer(CONFIG, trained(network), "cpu").logits(QUESTION, PIECES)
    encoder = load_encoder("all-MiniLM-L6-v2")
    cosine = encoder.encode(TEXTS) @ encoder.encode_queries([QUESTION])[0]
    assert logits == pytest.approx(PairNetwork.COSINE * (cosine - 0.5), abs=0.15)


def test_logits_do_not_depend_on_the_other_texts_of_the_batch() -> None:
    scorer = PairScorer(CONFIG, trained(minilm_pair_network(CONFIG, minilm())), "cpu")
    together = scorer.logits(QUESTION, PIECES)
    assert [scorer.logits(QUESTION, [Piece(text)])[0] for text in TEXTS] == pytest.approx(together, abs=0.1)


def test_query_and_candidate_are_not_interchangeable() -> None:
    network = minilm_pair_network(CONFIG, minilm())
    torch.manual_seed(0)
    network.across.data.zero_()
    network.sides.data.normal_()
    scorer = PairScorer(CONFIG, trained(network), "cpu")
    assert (
        abs(scorer.logits(TEXTS[0], [Piece(TEXTS[1])])[0] - scorer.logits(TEXTS[1], [Piece(TEXTS[0])])[0])
        > 0.01
    )


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


def test_a_piece_is_read_below_its_titles_and_between_the_words_beside_it() -> None:
    tokenizer = minilm().tokenizer
    piece = Piece("Change the oil.", "Pump M-7: ", "wet " * 40 + "Drain it.", "Close it. " + "dry " * 40)
    (row,), (around,) = tokens_of_pieces(tokenizer, [piece])
    assert tokenizer.decode(row).startswith("pump m - 7 : wet wet")
    assert tokenizer.decode([one for one, is_around in zip(row, around, strict=True) if not is_around]) == (
        "pump m - 7 : change the oil."
    )
    beside = tokenizer.decode([one for one, is_around in zip(row, around, strict=True) if is_around])
    assert "drain it. close it." in beside
    assert 30 < around.sum() < 50


def test_text_around_a_long_piece_does_not_make_it_shorter() -> None:
    long = TEXTS[2] * 3
    (row,), _ = tokens_of_pieces(minilm().tokenizer, [Piece(long)])
    (with_text,), (around,) = tokens_of_pieces(minilm().tokenizer, [Piece(long, before="wet " * 50)])
    assert len(row) == CANDIDATE_TOKENS
    assert len(with_text) - around.sum() == CANDIDATE_TOKENS


def test_words_around_a_piece_change_how_it_is_understood_but_are_not_its_own() -> None:
    scorer = PairScorer(CONFIG, trained(minilm_pair_network(CONFIG, minilm())), "cpu")
    mine = "He has kept it since the spring."
    about = "Ilse Brandt came to the harbour, where the lamp is."
    alone, read_in, whole = scorer.logits(
        QUESTION, [Piece(mine), Piece(mine, before=about), Piece(f"{about} {mine}")]
    )
    assert alone < read_in < whole
