"""What single commands of benchmarks compute: applications, other libraries, rerankers, segmentation."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.adoption import __main__ as adoption
from benchmarks.adoption.apps import NEAREST, Piece, Sent, langchain, llamaindex
from benchmarks.adoption.documentation import plain, read_questions, write_documents
from benchmarks.harness.datasets import Evidence
from benchmarks.papers.segmentation import Sentences, best_threshold
from benchmarks.peers import Units, recursive, sentences_of, window
from precise_rag.encoders import load_encoder
from precise_rag.rerank import load_reranker
from precise_rag.segmentation.training.labelled_documents import LabelledDocument
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.documents import read_cases

TEXT = "# Pump\n\n| part | age |\n|---|---|\n| wheel | 9 |\n\nIt turns <b>left</b>."
MILL = read_cases("commands.json", "of a mill")


@pytest.mark.parametrize("framework", [llamaindex, langchain])
def test_every_line_sends_the_evidence(framework, tmp_path: Path) -> None:
    for name, text in (("mill", MILL), ("quay", "The quay is long. Boats moor at the quay.")):
        (tmp_path / f"{name}.txt").write_text(text, "utf-8")
    file, start = str(tmp_path / "mill.txt"), MILL.index("Its wheel")
    evidence = (Evidence(file, start, MILL.index(" Oak")),)
    asked = adoption.Asked("Who carved the wheel of the mill?", ("carved by Runa Stell",), evidence)
    texts = {str(path): path.read_text("utf-8") for path in tmp_path.iterdir()}
    lines = list(framework(tmp_path, load_encoder(), load_reranker("packaged")))
    found = [(line, adoption.measured(line.ask(asked.question), asked, texts)) for line in lines]
    assert len(found) == len(NEAREST) + 4
    assert all(values["evidence"] == values["one piece"] == 1 for _, values in found)
    assert found[-1][1]["tokens"] < found[1][1]["tokens"]
    assert [row["line"] for row in adoption.summary(found)][-1] == "`PreciseRetriever`"


def test_the_tokens_of_the_stock_application_are_interpolated_and_never_made_up() -> None:
    stock = [{"evidence": e, "tokens": t} for e, t in ((0.5, 100), (0.4, 200), (0.9, 300), (0.9, 900))]
    assert adoption.tokens_for(0.25, stock) == pytest.approx(50)
    assert adoption.tokens_for(0.7, stock) == pytest.approx(200)
    assert adoption.tokens_for(0.9, stock) == pytest.approx(300)  # the fewest that reach it
    assert adoption.tokens_for(0.95, stock) is None


@pytest.mark.parametrize(("texts", "expected"), read_cases("commands.json", "what a prompt is worth"))
def test_what_a_prompt_is_worth(texts: list[str], expected: list[int]) -> None:
    asked = adoption.Asked("How old is the wheel?", ("part | age", "wheel | 9"))
    sent = Sent([Piece("pump.md", text, text) for text in texts], "\n\n".join(texts), 12)
    found = adoption.measured(sent, asked, {"pump.md": TEXT})
    assert [found[key] for key in ("evidence", "one piece", "first")] == expected


def test_each_question_about_documentation_is_answered_by_its_document(tmp_path: Path) -> None:
    asked = list(read_questions())
    assert len({one.question for one in asked}) == len(asked) >= 60
    assert {one.kind for one in asked} == {"code", "table", "list", "definition", "option", "prose"}
    names = {name for name in write_documents(tmp_path) if not name.startswith("python/")}
    texts = {name: plain((tmp_path / name).read_text("utf-8")) for name in names}
    for one in asked:
        if one.document in names:  # the topics of Python's help differ from version to version
            assert all(plain(passage) in texts[one.document] for passage in one.answer), one.question
    assert plain("| wheel |\n 9 |") == plain("wheel <b>9</b>\n") == "wheel9"


@pytest.mark.parametrize("making", [recursive(20), sentences_of(20), window])
def test_a_splitter_of_another_library_covers_the_text_and_knows_where(making) -> None:
    document = Document("mill", MILL)
    units = making(HashEncoder())(document)
    assert "".join("".join(unit.text for unit in units).split()) == "".join(MILL.split())
    assert all("".join(u.text.split()) in "".join(MILL[u.start : u.end].split()) for u in units)
    found = Units(making).build([document], HashEncoder()).search("Who carved the wheel?", 1)
    assert "Runa Stell" in found[0].text


def test_rankings_and_probabilities_by_hand() -> None:
    from benchmarks.reranking import calibration_error, quality

    relevant = np.array([False, True, False, True])
    ndcg, mrr, recall = quality(np.array([0.9, 0.8, 0.1, 0.2]), relevant)
    ideal = 1 + 1 / np.log2(3)
    assert (ndcg, mrr, recall) == pytest.approx(((1 / np.log2(3) + 1 / np.log2(4)) / ideal, 0.5, 1.0))
    assert quality(np.ones(4), np.zeros(4, dtype=bool)) == (0, 0, 0)
    probability, truth = np.array([0.1, 0.15, 0.95]), np.array([False, True, True])
    assert calibration_error(probability, truth) == pytest.approx((0.75 + 0.05) / 3)


def test_pairs_of_sentences_are_drawn_as_table_x_says() -> None:
    sentences, paragraphs = tuple("abcdefgh"), np.array([0, 1, 0, 0, 1, 0, 0])
    side = Sentences([LabelledDocument(f"{n}", "x", sentences, paragraphs, np.zeros(7)) for n in range(4)])
    for protocol in ("adjacent", "same document", "any"):
        pairs, together = side.pairs(protocol)
        assert together.sum() * 2 == len(pairs) > 0
        (left, right), apart = pairs.T, ~together
        assert (side.paragraph[left] == side.paragraph[right])[together].all()
        assert (side.paragraph[left] != side.paragraph[right])[apart].all()
        assert ((side.owner[left] == side.owner[right])[apart] == (protocol != "any")).all()
    assert best_threshold(np.array([3.0, 1.0, 2.0, 4.0]), np.array([False, True, True, False])) == 2.0
