"""Metrics of answers against values worked out by hand."""

import math
import sys

import pytest

from precise_rag.errors import InputError, MissingExtra
from precise_rag.evaluation.measures import answers
from precise_rag.evaluation.measures.answers import (
    accuracy,
    bleu,
    corpus_bleu,
    exact_match,
    f1_match,
    meteor,
    normalize_answer,
    rouge_l,
    score_answers,
)

SAT, WAS = "The cat sat on the mat", "the cat was on the mat"


class NoSynonyms:
    def synsets(self, word, *args):
        return []


class CarIsAuto:
    """A WordNet with one synset."""

    def synsets(self, word, *args):
        return [self] if word in ("car", "auto") else []

    def lemmas(self):
        return [Lemma("car"), Lemma("auto")]


class Lemma:
    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name


def test_answers_are_normalised_as_in_squad():
    assert normalize_answer("  The U.S.A., an   example: a “test”! ") == "usa example “test”"
    assert normalize_answer("Theatre and another") == "theatre and another"


def test_accuracy_compares_without_normalising():
    assert accuracy("B", ["B"]) == pytest.approx(1)
    assert accuracy(2, [1]) == pytest.approx(0)
    assert accuracy(None, ["B"]) == pytest.approx(0)


@pytest.mark.parametrize(
    ("prediction", "references", "em", "f1"),
    [
        ("the Eiffel Tower!", ["Eiffel tower"], 1.0, 1.0),
        ("Eiffel Tower in Paris", ["the Eiffel Tower"], 0.0, 2 * 2 / (4 + 2)),
        ("Paris", ["London", "Paris, France"], 0.0, 2 * 1 / (1 + 2)),
        ("no", ["yes"], 0.0, 0.0),
        ("the the", ["a"], 1.0, 1.0),
        ("the", ["Paris"], 0.0, 0.0),
        ("dog dog cat", ["dog cat cat"], 0.0, 2 * 2 / 6),
    ],
)
def test_exact_match_and_f1(prediction, references, em, f1):
    assert exact_match(prediction, references) == pytest.approx(em)
    assert f1_match(prediction, references) == pytest.approx(f1)


def test_rouge_l_is_the_longest_common_subsequence():
    # "the cat … on the mat" is common: 5 words of 6 on both sides.
    assert rouge_l(SAT, [WAS]) == pytest.approx(5 / 6)
    assert rouge_l(SAT, ["nothing", WAS]) == pytest.approx(5 / 6)
    # stemmed: "cats" is "cat"; precision 1/1, recall 1/2
    assert rouge_l("cats", ["a cat"]) == pytest.approx(2 / 3)


def test_bleu_by_its_formula():
    assert bleu(SAT, [WAS], order=1) == pytest.approx(5 / 6)
    # precisions 5/6, 3/5, 1/4 and 0/3, which exponential smoothing makes (1/2)/3
    assert bleu(SAT, [WAS]) == pytest.approx((5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** (1 / 4))
    # one word of three: precision 1, brevity penalty exp(1 - 3/1)
    assert bleu("France", ["France is big"], order=1) == pytest.approx(math.exp(-2))
    assert bleu("France", ["France"]) == pytest.approx(1.0)


def test_corpus_bleu_pools_counts_and_takes_the_closest_lengths():
    predictions = [SAT, "a dog runs"]
    references = [[WAS, "the cat sat on a mat"], ["a dog runs fast"]]
    brevity = math.exp(1 - 10 / 9)
    assert corpus_bleu(predictions, references, order=1) == pytest.approx(brevity)
    # pooled precisions: 9/9, 7/7, 4/5, 1/3
    assert corpus_bleu(predictions, references) == pytest.approx(brevity * (4 / 5 * 1 / 3) ** (1 / 4))


def test_meteor_by_its_formula():
    # m matches in c chunks: F * (1 - 0.5 * (c / m) ** 3)
    assert meteor(SAT, [SAT], wordnet=NoSynonyms()) == pytest.approx(1 - 0.5 * (1 / 6) ** 3)
    assert meteor("cat the", ["the cat"], wordnet=NoSynonyms()) == pytest.approx(0.5)
    # stems match: "action" and "actions"
    assert meteor("a guide to action", ["a guide to actions"], wordnet=NoSynonyms()) == pytest.approx(
        1 - 0.5 * (1 / 4) ** 3
    )


def test_meteor_counts_synonyms():
    assert meteor("car", ["auto"], wordnet=NoSynonyms()) == pytest.approx(0)
    assert meteor("car", ["auto"], wordnet=CarIsAuto()) == pytest.approx(0.5)


def test_meteor_with_the_real_wordnet():
    try:
        score = meteor("the car stopped", ["the auto stopped"])
    except MissingExtra:
        pytest.skip("NLTK's WordNet data is not installed")
    assert score == pytest.approx(1 - 0.5 * (1 / 3) ** 3)  # synonyms match: one chunk of three words


def test_meteor_without_wordnet_names_the_command(monkeypatch):
    import nltk

    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.delitem(sys.modules, "nltk.corpus", raising=False)
    answers._nltk_wordnet.cache_clear()
    with pytest.raises(MissingExtra, match=r"python -m nltk\.downloader wordnet"):
        meteor("a", ["a"])


def test_scores_of_many_answers():
    scores = score_answers(["Paris", "Rome"], [["Paris"], ["rome!"]], ["EM", "F1", "BLEU-1", "BLEU-4"])
    assert {name: values.tolist() for name, values in scores.items()} == {
        "EM": pytest.approx([1.0, 1.0]),
        "F1": pytest.approx([1.0, 1.0]),
        "BLEU-1": pytest.approx([1.0, math.exp(1 - 2 / 1)]),
        "BLEU-4": pytest.approx([1.0, math.exp(1 - 2 / 1)]),
    }


def test_bad_input_is_named():
    with pytest.raises(InputError, match="references must be a list of at least one answer, got 'Paris'"):
        f1_match("Paris", "Paris")
    with pytest.raises(InputError, match="at least one"):
        rouge_l("Paris", [])
    with pytest.raises(InputError, match="got 2 predictions and 1 sets"):
        score_answers(["a", "b"], [["a"]])
    with pytest.raises(InputError, match="got F2"):
        score_answers([], [], ["F2"])
