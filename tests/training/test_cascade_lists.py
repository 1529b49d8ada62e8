"""Tests of the examples that the cascade's cross-encoder is trained on."""

from pathlib import Path

import numpy as np

from benchmarks.harness.datasets import Evidence, Question
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from training.candidate_lists import Collection, calibrates
from training.reranker_cascade.build import build_collection, kept_lists, read
from training.reranker_cascade.examples import N_SHOWN, Example, examples_and_kept

WORDS = ["amber", "basil", "cedar", "daisy", "elder", "fennel", "garlic", "hazel", "iris", "juniper", "kale"]


def document(key: str) -> Document:
    text = " ".join(f"The {word} of {key} grows in field number {n}." for n, word in enumerate(WORDS))
    return Document(key, text, {"title": f"Garden {key}", "id": key})


def asked(key: str, word: str) -> Question:
    start = document(key).text.index(f"The {word}")
    return Question(
        f"{key} {word}",
        f"Where does the {word} grow, and what is its field number?",
        (Evidence(key, start, start + 20),),
        answers=(f"The {word} of {key}",),
    )


def collection(number: int, name: str = "train/selqa") -> Collection:
    keys = [f"g{n}" for n in range(8)]
    questions = tuple(asked(key, word) for key in keys for word in WORDS)
    return Collection(name, number, tuple(map(document, keys)), questions)


def made(number: int, name: str = "train/selqa") -> tuple[list[Example], dict]:
    return examples_and_kept(collection(number, name), HashEncoder(64), np.random.default_rng(0))


def test_an_example_has_a_relevant_candidate_of_a_document_to_train_on_unless_it_was_emptied() -> None:
    examples, kept = made(1)
    answered = [one for one in examples if one.relevant.any()]
    assert 0.85 < len(answered) / len(examples) < 1.0
    trained_on = {key for key in (f"g{n}" for n in range(8)) if not calibrates(key)}
    for one in examples:
        assert len(one.pieces) == len(one.relevant) <= N_SHOWN[one.kind]
        assert (~one.relevant).sum() >= 2
        relevant = [piece.text for piece, is_so in zip(one.pieces, one.relevant, strict=True) if is_so]
        assert all(any(f" of {key} " in text for key in trained_on) for text in relevant)
    assert kept
    assert all(calibrates(one.group) for lists in kept.values() for one in lists)


def test_sentences_are_shown_in_their_texts_and_chunks_without() -> None:
    examples, kept = made(1)
    for one in examples:
        if one.kind != "sentences":
            assert not any(piece.before or piece.after for piece in one.pieces)
    pieces = [piece for one in examples if one.kind == "sentences" for piece in one.pieces]
    assert sum(bool(piece.before or piece.after) for piece in pieces) > 0.8 * len(pieces)
    assert any(c.before for one in kept["sentences"] for c in one.candidates)


def test_every_third_collection_is_searched_in_all_ways_and_documents_that_are_not_named_alone() -> None:
    kinds = [{one.kind for one in made(number)[0]} for number in (0, 1)]
    assert kinds == [{"sentences", "bm25", "passages"}, {"sentences", "bm25", "passages", "dense"}]
    assert not made(0)[1]
    examples, _ = made(0, "train/cuad")
    assert all(len({piece.above for piece in one.pieces}) == 1 for one in examples)
    assert any(len({piece.above for piece in one.pieces}) > 1 for one in made(0)[0])


def test_lists_kept_out_are_read_by_set(tmp_path: Path) -> None:
    for number in (1, 4):
        build_collection(collection(number, "dev/squad"), HashEncoder(64), tmp_path)
    assert list(kept_lists(tmp_path, "sentences")) == ["dev/squad"]
    stored = len(list(tmp_path.glob("kept-dev-squad-*-sentences.pickle")))
    assert stored == 2
    assert read(tmp_path / "human-dev-squad-001.pickle")
