"""Tests of what the multilingual encoder and cross-encoder are trained on."""

import struct
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness.datasets import Evidence, Question
from precise_rag.types import Document, Span
from training.candidate_lists import is_kept
from training.multilingual.e5_file import E5File, unpacked
from training.multilingual.lists import Labelled, Lists, lists_of
from training.multilingual.words import kept_words

FRUIT = ["amber", "basil", "cedar", "daisy", "elder", "fennel", "garlic", "hazel", "iris", "juniper", "kale"]
TEXT = " ".join(f"The {fruit} grows in field {n}." for n, fruit in enumerate(FRUIT))


def asked(fruit: str, *answers: str, itself: str = "") -> Question:
    start, at = TEXT.index(f"The {fruit}"), TEXT.find(f"The {itself}")
    metadata = {"asked": Span(at, at + 5)} if itself else {}
    evidence = (Evidence("d", start, start + 12),)
    return Question("", f"Where grows the {fruit}?", evidence, answers, metadata=metadata)


def made(*questions: Question) -> Lists:
    return lists_of([Document("d", TEXT, {"title": "Herbs"})], questions)


def test_a_list_has_what_answers_what_bm25_finds_and_what_may_answer_too() -> None:
    elsewhere = Question("", "Where is it?", (Evidence("d", len(TEXT), len(TEXT) + 1),))
    first, second, third = made(
        asked("cedar", "The basil"), asked("iris", itself="kale"), elsewhere, Question("", "Elder?")
    ).questions
    assert (first.positives, first.skipped) == ([2], [1])
    assert (second.positives, second.skipped) == ([8], [10])
    assert len(first.negatives) == 9
    assert not {1, 2} & set(first.negatives)
    assert (third.positives, third.negatives) == ([], [4])


def test_the_questions_about_one_in_eight_documents_are_kept_out() -> None:
    assert sum(is_kept(f"doc-{n}") for n in range(8_000)) == pytest.approx(1_000, abs=120)
    assert all(one.kept == is_kept("d") for one in made(asked("cedar")).questions)


def test_single_characters_and_the_words_with_the_largest_share_in_any_language_are_kept() -> None:
    words = ["<s>", "<pad>", "</s>", "<unk>", "▁the", "▁der", "山", "▁x", "▁rare", "▁haus"]
    english = np.array([0, 0, 0, 0, 0.9, 0, 0, 0, 0.1, 0])
    german = np.array([0, 0, 0, 0, 0, 0.6, 0, 0, 0, 0.4])
    assert kept_words([(1.0, english), (1.0, german)], words, 9) == [0, 1, 2, 3, 4, 5, 6, 7, 9]
    assert 8 in kept_words([(5.0, english), (1.0, german)], words, 9)


def test_a_file_of_4_bits_is_read(tmp_path: Path) -> None:
    words, width = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b"], 32
    texts = [word.encode() for word in words]
    starts = np.cumsum([0, *map(len, texts)]).astype("<u4")
    header = b"12345678" + struct.pack(
        "<7ifi5iQ", width, 0, 1, 4, 6, 8, 1, 1e-12, 32, 6, 0, 2, 1, 3, starts[-1]
    )
    head = header + starts.tobytes() + np.arange(6, dtype="<f4").tobytes() + b"".join(texts)
    head += struct.pack("<iI", 0, 3) + b"xyz" + struct.pack("<iH", 1, 8) + b"emb.word"
    first = len(head) + struct.calcsize("<BIQQ")
    rows = [struct.pack("<e", 0.5) + bytes([0x80 + n] * 16) for n in range(6)]
    (tmp_path / "e5.bin").write_bytes(head + struct.pack("<BIQQ", 1, 6 * width, first, 0) + b"".join(rows))
    source = E5File(tmp_path / "e5.bin")
    assert source.words == list(zip(words, range(6), strict=True))
    table = unpacked(*source.word_table([2, 5]))
    assert table.tolist() == [[-3.0] * 16 + [0.0] * 16, [-1.5] * 16 + [0.0] * 16]
    tokenizer = source.tokenizer([0, 1, 2, 3, 5])
    assert tokenizer.encode("b").ids == [0, 4, 2]


def test_longer_texts_that_hold_an_answer_are_no_negatives_and_titles_stand_above(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from training.multilingual.train import Pool

    pool, lists = Pool(tmp_path, None, None), made(asked("kale"))
    example = lists, Labelled("Where does the kale grow?", False, [10], [9, 0], [])
    read = [pool.pieces(example, np.array([10, 9, 0]), np.array([True, False, False])) for _ in range(300)]
    assert {len(pieces) for pieces, _ in read} == {1, 3}
    assert all(relevant.tolist() == [True, False, False][: len(pieces)] for pieces, relevant in read)
    assert {pieces[0].above for pieces, _ in read} >= {"", "Herbs: "}
    alone = sum(not pieces[0].before for pieces, _ in read)
    assert alone / len(read) == pytest.approx(0.15 + 0.85 * 0.25, abs=0.1)


def test_batches_hold_every_row_once_and_losses_of_lists_without_an_answer_are_finite() -> None:
    torch = pytest.importorskip("torch")
    from training.multilingual.train import batches, softmax_losses

    rows = [np.full((2, 1 + 37 * n % 400), n) for n in range(300)]
    several = list(batches(rows))
    assert len(several) > 2
    assert sorted(place for places, _, _ in several for place in places) == list(range(300))
    for places, given, mask in several:
        assert (given[0][mask] == torch.from_numpy(places).repeat_interleave(mask.sum(1))).all()
    none, _ = softmax_losses(torch.zeros(2, 3), torch.tensor([[True, True, False], [False, False, False]]))
    assert none.item() == pytest.approx(-np.log(2 / 3) / 2, abs=1e-6)


def test_a_step_of_the_cross_encoder_has_a_loss_with_and_without_a_teacher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from tokenizers import Tokenizer
    from transformers import BertConfig, BertForSequenceClassification

    from precise_rag.encoders.local import E5, packaged_encoder
    from training.multilingual import train

    monkeypatch.setattr(train, "LISTS", 3)
    pool = train.Pool(tmp_path, None, Tokenizer.from_file(str(packaged_encoder(E5) / "tokenizer.json")))
    example = made(asked("kale")), Labelled("Where does the kale grow?", False, [10], [9, 0], [])
    monkeypatch.setattr(pool, "drawn", lambda *_: [(example, np.array([10, 9, 0]), np.arange(3) < 1)] * 3)
    sizes = {"vocab_size": 96_000, "type_vocab_size": 3, "hidden_size": 8, "intermediate_size": 8}
    one, two = (
        BertForSequenceClassification(BertConfig(**sizes, num_hidden_layers=n, num_attention_heads=2))
        for n in (1, 2)
    )
    for teacher in (None, two):
        one.zero_grad()
        train.cross_loss(pool, one, teacher, 0.1).backward()
        assert one.classifier.weight.grad.abs().sum() > 0
