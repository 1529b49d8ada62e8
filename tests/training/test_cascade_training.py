"""Tests of what the cascade's cross-encoder reads and learns in a step."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

# ruff: noqa: E402
from precise_rag.encoders.local import MINILM, packaged_encoder
from precise_rag.encoders.token_ids import read_tokenizer
from precise_rag.rerank.pair_network import PairNetwork, TransformerConfig
from precise_rag.rerank.pairs import Piece, PieceTokens
from training.reranker_cascade.build import write
from training.reranker_cascade.examples import Example
from training.reranker_cascade.train import (
    LowerLayers,
    Pool,
    Tokens,
    as_read,
    batch_loss,
    batches,
    pair_logits,
)


def tokens(*rows: list[int]) -> PieceTokens:
    """Token ids of pieces, whose second token is text around them."""
    return PieceTokens(list(rows), [np.arange(len(row)) == 1 for row in rows])


def example(source: str = "train/nq", kind: str = "sentences") -> Example:
    return Example(
        "How often is the M-7 serviced?",
        (
            Piece("Change the oil every month.", "Pump M-7", "It runs on oil. ", " Use the old one."),
            Piece("The M-7 is serviced by our staff.", "Pump M-7"),
            Piece("Keep it dry.", before="It is a boat. "),
        ),
        np.array([True, False, False]),
        kind,
        source,
    )


def test_candidates_are_read_with_titles_or_without_and_a_quarter_without_the_text_around() -> None:
    random = np.random.default_rng(0)
    ways = {tuple(piece.above for piece in as_read(example(), random).pieces) for _ in range(60)}
    assert ways == {("", "", ""), ("Pump M-7: ", "", ""), ("Pump M-7: ", "Pump M-7: ", "")}
    random = np.random.default_rng(0)
    read = [as_read(example(), random).pieces for _ in range(400)]
    alone = sum(not any(piece.before or piece.after for piece in pieces) for pieces in read)
    assert alone == pytest.approx(100, abs=30)
    assert {pieces[0].before for pieces in read} == {"", "It runs on oil. "}


def test_a_set_weighs_the_square_root_of_its_size_beside_the_weak_share(tmp_path: Path) -> None:
    write(tmp_path / "human-train-nq-000.pickle", [example()] * 2000)
    write(tmp_path / "human-train-faq-000.pickle", [example("train/faq"), example("train/faq", "bm25")] * 250)
    write(tmp_path / "weak-peps-000.pickle", [example("weak/peps")] * 900)
    sources = [one.source for one in Pool(tmp_path).drawn(np.random.default_rng(0))]
    assert sources.count("train/nq") / sources.count("train/faq") == pytest.approx(2, abs=0.05)
    assert sources.count("weak/peps") / len(sources) == pytest.approx(0.15, abs=0.01)


def test_the_loss_of_a_list_without_a_relevant_candidate_is_finite() -> None:
    network = PairNetwork(TransformerConfig(n_layers=2, n_apart=1))
    batch = [Tokens([1, 2], tokens([3, 4], [5, 6]), np.array([False, False]))]
    loss = batch_loss(network, LowerLayers(network.config), batch)
    loss.backward()
    assert torch.isfinite(loss)


def test_a_candidate_has_the_same_logit_whatever_is_scored_with_it() -> None:
    network = PairNetwork(TransformerConfig(n_layers=2, n_apart=1)).eval()
    random = np.random.default_rng(0)
    rows = [random.integers(2000, 9000, n).tolist() for n in (5, 90, 6, 7, 40, 5, 6, 8, 91, 12)]
    several = [Tokens([101, 7, 102], tokens(*rows), np.zeros(10, dtype=bool))]
    alone = [[Tokens([101, 7, 102], tokens(row), np.zeros(1, dtype=bool))] for row in rows]
    lower = LowerLayers(network.config)
    each = [pair_logits(network, lower, one).item() for one in alone]
    assert pair_logits(network, lower, several).tolist() == pytest.approx(each, abs=0.1)


def test_no_example_is_lost_between_batches() -> None:
    tokenizer = read_tokenizer(packaged_encoder(MINILM) / "tokenizer.json")
    given = [example()._replace(question="why " * n) for n in range(1, 31)] * 20
    several = batches(given, tokenizer, np.random.default_rng(0))
    assert len(several) > 3
    assert sorted(len(t.question) for b in several for t in b) == sorted([n + 2 for n in range(1, 31)] * 20)
