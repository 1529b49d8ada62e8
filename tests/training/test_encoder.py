from pathlib import Path

import numpy as np
import pytest
import torch

from precise_rag import load_encoder
from precise_rag.encoders.load import minilm_encoder
from precise_rag.evaluation import Dataset, Evidence, Question
from precise_rag.types import Document
from training.encoder.batches import Batch, Pool
from training.encoder.build import pack, retyped
from training.encoder.network import SentenceNetwork, save_encoder, save_start
from training.encoder.pack import Pack
from training.encoder.train import Trainer, contrast, loss_of

HARBOUR = "The harbour lies in the north.\n\nIlse Brandt keeps the lamp. She lights it at dusk."
MILL = "The mill stands by the river. Its lamp is lit by Odd Vik.\n\nThe miller keeps two cats."
TEXTS = [
    "Ilse Brandt keeps the lamp of the harbour.",
    "Two ferries cross the river every hour, and a third at dusk.",
]


def asked(text: str, doc_id: str, answer: str) -> Question:
    start = {"harbour": HARBOUR, "mill": MILL}[doc_id].index(answer)
    return Question(text, text, (Evidence(doc_id, start, start + len(answer)),), (answer,), doc_id)


def packed(name: str = "harbours") -> Pack:
    documents = (Document("harbour", HARBOUR), Document("mill", MILL))
    questions = (
        asked("Who keeps the lamp of the harbour?", "harbour", "Ilse Brandt"),
        asked("Who lights the lamp of the mill?", "mill", "Odd Vik"),
        asked("How many cats are there?", "mill", "two cats"),
    )
    return pack(Dataset(name, documents, questions), minilm_encoder(), np.random.default_rng(0))


def words(ids: list[int]) -> str:
    return minilm_encoder().tokenizer.decode(ids)


@pytest.fixture(params=["harbours"])
def batch(request: pytest.FixtureRequest, tmp_path: Path) -> Batch:
    packed(request.param).save(tmp_path / f"{request.param}.npz")
    return next(Pool(tmp_path).batches(100, np.random.default_rng(0)))


def test_evidence_is_the_sentence_that_holds_the_answer() -> None:
    made = packed()
    assert [words(made.sentences[s]) for s in made.evidence[:, 1]] == [
        "ilse brandt keeps the lamp.",
        "its lamp is lit by odd vik.",
        "the miller keeps two cats.",
    ]


def test_passages_are_paragraphs_and_near_ones_hold_no_evidence() -> None:
    made = packed()
    assert np.diff(made.passages).tolist() == [1, 2, 2, 1]
    assert made.documents.tolist() == [0, 0, 1, 1]
    assert 2 in made.near[0]
    of_sentence = np.repeat(np.arange(4), np.diff(made.passages))
    for question, sentence in made.evidence:
        assert of_sentence[sentence] not in made.near[question]


def test_a_pack_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = packed("cuad-like")
    made.save(tmp_path / "made.npz")
    read = Pack.load(tmp_path / "made.npz")
    assert [read.questions[row] for row in range(3)] == [made.questions[row] for row in range(3)]
    assert read.near.tolist() == made.near.tolist()
    assert read.alone is False
    assert [path.name for path in tmp_path.iterdir()] == ["made.npz"]


def test_contracts_are_also_asked_by_the_name_of_the_clause() -> None:
    question = (
        'Highlight the parts (if any) of this contract related to "Expiry" that matter. Details: When it ends'
    )
    random = np.random.default_rng(0)
    assert {retyped(question, "cuad", random) for _ in range(20)} == {
        "Expiry: When it ends",
        "When it ends",
        "Expiry",
    }


def test_the_gold_sentences_of_a_batch_hold_the_evidence(batch: Batch) -> None:
    sentences = [words(row) for passage in batch.passages for row in passage]
    answers = {"keeps": "ilse", "lights": "odd", "cats": "two cats"}
    assert len(batch.gold) == len(batch.questions) > 1
    for question, place in batch.gold:
        text = words(batch.questions[question])
        assert any(key in text and answer in sentences[place] for key, answer in answers.items()), text


@pytest.mark.parametrize(("batch", "alone"), [("harbours", False), ("tatqa", True)], indirect=["batch"])
def test_other_documents_are_negatives_only_of_questions_that_make_sense_among_them(
    batch: Batch, alone: bool
) -> None:
    assert batch.apart.any() == alone
    passage = np.repeat(np.arange(len(batch.passages)), [len(p) for p in batch.passages])
    assert not any(batch.apart[question, passage[place]] for question, place in batch.gold)


def test_packs_that_are_written_later_join_and_those_left_out_do_not(tmp_path: Path) -> None:
    packed().save(tmp_path / "harbours.npz")
    pool = Pool(tmp_path, ["mills"])
    for name in ("mills", "weak-lamps"):
        packed(name).save(tmp_path / f"{name}.npz")
    assert pool.shares == {"harbours": 1.0}
    pool.look()
    assert pool.shares == {"harbours": pytest.approx(1 / 1.12), "weak-lamps": pytest.approx(0.12 / 1.12)}


def test_the_contrast_is_the_share_of_the_gold_ones_among_those_that_are_not_apart() -> None:
    cosines = torch.tensor([[0.5, 0.5, 0.5, 0.9]])
    gold = torch.tensor([[True, False, False, False]])
    apart = torch.tensor([[False, False, False, True]])
    assert contrast(cosines, gold, apart).item() == pytest.approx(np.log(3), abs=1e-5)


def test_each_gold_sentence_counts_and_gold_ones_do_not_compete() -> None:
    gold, apart = torch.tensor([[True, True, False]]), torch.zeros(1, 3, dtype=torch.bool)
    found = contrast(torch.tensor([[0.9, 0.9, 0.5]]), gold, apart).item()
    missed = contrast(torch.tensor([[0.9, 0.5, 0.5]]), gold, apart).item()
    assert found < 0.01
    assert missed == pytest.approx(np.log(2) / 4, abs=0.01)


def test_before_training_the_vectors_are_minilms() -> None:
    encoder = minilm_encoder()
    found = encoder.tokens(TEXTS)
    rows = [
        found.ids[low + 1 : high - 1].tolist()
        for low, high in zip(found.offsets, found.offsets[1:], strict=False)
    ]
    with torch.no_grad():
        vectors = SentenceNetwork().vectors(rows, tokens_at_once=16)
    assert (vectors.numpy() * encoder.encode(TEXTS)).sum(1) == pytest.approx(1, abs=0.01)


def test_a_step_changes_the_upper_layers_only_and_lowers_the_loss(batch: Batch) -> None:
    torch.manual_seed(0)
    network, random = SentenceNetwork(), np.random.default_rng(1)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    optimizer = torch.optim.SGD(network.upper.parameters(), lr=0.05)
    losses = []
    for _ in range(3):
        loss, _ = loss_of(network, batch, random)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    changed = {name for name, tensor in network.state_dict().items() if not tensor.equal(before[name])}
    assert losses[-1] < losses[0]
    assert changed
    assert all("together." in name or name.startswith("upper.") for name in changed)


def test_an_exported_encoder_is_the_mean_with_minilm(tmp_path: Path) -> None:
    network = SentenceNetwork()
    torch.manual_seed(0)
    upper = {k: v + 0.02 * torch.randn_like(v) for k, v in network.upper.state_dict().items()}
    save_encoder(tmp_path / "all-old", upper, old=1.0)
    save_encoder(tmp_path / "new", upper)
    minilm, new = minilm_encoder(), load_encoder(tmp_path / "new")
    assert load_encoder(tmp_path / "all-old").encode(TEXTS) == pytest.approx(minilm.encode(TEXTS), abs=1e-6)
    assert new.name != minilm.name
    network.upper.load_state_dict(upper)
    found = minilm.tokens(TEXTS)
    rows = [
        found.ids[low + 1 : high - 1].tolist()
        for low, high in zip(found.offsets, found.offsets[1:], strict=False)
    ]
    with torch.no_grad():
        vectors = network.vectors(rows).numpy()
    assert (vectors * new.encode(TEXTS)).sum(1) == pytest.approx(1, abs=0.01)


def test_training_may_start_from_small_weights(tmp_path: Path) -> None:
    save_start(tmp_path)
    rows = [[2040, 7906, 1996, 10437], [2048, 12010]]
    with torch.no_grad():
        cosines = (SentenceNetwork().vectors(rows) * SentenceNetwork(tmp_path).vectors(rows)).sum(1)
    assert cosines.numpy() == pytest.approx(1, abs=0.01)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 24_000_000


def test_training_goes_on_where_it_was_saved(batch: Batch, tmp_path: Path) -> None:
    first, random = Trainer(None, rate=1e-4), np.random.default_rng(0)
    first.train(batch, 1.0, random)
    first.save(tmp_path)
    second = Trainer(None, rate=1e-4)
    second.resume(torch.load(tmp_path / "state.pt"))
    assert second.step == 1
    for name, tensor in first.network.upper.state_dict().items():
        assert tensor.equal(second.network.upper.state_dict()[name])
    trained = torch.load(tmp_path / "trained.pt")
    assert trained["mean"].keys() == first.mean.keys()
    assert (tmp_path / "trained.pt").stat().st_size < 12_000_000
