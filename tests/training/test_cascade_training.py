"""Tests of what the cascade's cross-encoder reads and learns in a step."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

# ruff: noqa: E402
from precise_rag.rerank.pair_network import PairNetwork, TransformerConfig
from training.reranker_cascade.build import write
from training.reranker_cascade.examples import Example
from training.reranker_cascade.train import Pool, Tokens, batch_loss, maybe_titled


def example(source: str = "train/nq", kind: str = "sentences") -> Example:
    return Example(
        "How often is the M-7 serviced?",
        ("Change the oil every month.", "The M-7 is serviced by our staff.", "Keep it dry."),
        ("Pump M-7", "Pump M-7", ""),
        np.array([True, False, False]),
        kind,
        source,
    )


def test_candidates_are_read_with_all_titles_with_needed_ones_or_without() -> None:
    random = np.random.default_rng(0)
    ways = {maybe_titled(example(), random).texts for _ in range(60)}
    plain = example().texts
    needed = (f"Pump M-7: {plain[0]}", *plain[1:])
    assert ways == {plain, needed, (f"Pump M-7: {plain[0]}", f"Pump M-7: {plain[1]}", plain[2])}


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    write(tmp_path / "human-train-nq-000.pickle", [example()] * 2000)
    write(tmp_path / "human-train-faq-000.pickle", [example("train/faq"), example("train/faq", "bm25")] * 250)
    write(tmp_path / "weak-peps-000.pickle", [example("weak/peps")] * 900)
    return tmp_path


def shares(lists: Path, without: tuple[str, ...] = ()) -> dict[str, float]:
    drawn = Pool(lists, without=without).drawn(0)
    return {name: sum(one.source == name for one in drawn) / len(drawn) for name in {e.source for e in drawn}}


def test_a_set_weighs_the_square_root_of_its_size_beside_the_weak_share(lists: Path) -> None:
    found = shares(lists)
    assert found["train/nq"] / found["train/faq"] == pytest.approx(2, abs=0.05)
    assert found["weak/peps"] == pytest.approx(0.25, abs=0.01)


def test_a_set_left_out_is_never_drawn(lists: Path) -> None:
    assert set(shares(lists, ("train/nq",))) == {"train/faq", "weak/peps"}


def test_the_loss_of_a_list_without_a_relevant_candidate_is_finite() -> None:
    network = PairNetwork(TransformerConfig(n_layers=1, n_apart=0))
    batch = [Tokens([1, 2], [[3, 4], [5, 6]], np.array([False, False]))]
    loss = batch_loss(network, batch)
    loss.backward()
    assert torch.isfinite(loss)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_loss_on_a_gpu_is_that_on_a_cpu() -> None:
    torch.manual_seed(0)
    network = PairNetwork(TransformerConfig(n_layers=2, n_apart=1))
    batch = [Tokens([1, 2], [[3, 4], [5, 6, 7]], np.array([True, False]))]
    there = batch_loss(network, batch).item()
    assert batch_loss(network.cuda(), batch).item() == pytest.approx(there, abs=0.05)
