"""`precise adapt`: learns from questions, saves what it learned with the index, and says what was gained."""

import json
import shutil

import pytest

from precise_rag.index import load_index
from precise_rag.rerank import Adaptation

PAGES = 24


@pytest.fixture(scope="module")
def mills(tmp_path_factory):
    """A folder with pages about mills that are alike, index/ of them, and questions.jsonl."""
    from precise_rag.cli import main

    folder = tmp_path_factory.mktemp("adapt")
    docs = folder / "docs"
    docs.mkdir()
    asked = []
    for n in range(PAGES):
        name = f"{chr(65 + n)}ilmar"
        quote = f"The mill of {name} grinds {n + 3} sacks a day."
        (docs / f"{name}.md").write_text(
            f"# {name}\n\nThe mill stands by the river.\n\n"
            f"## What the mill of {name} grinds\n\n{quote} The miller of {name} has a book in which all the "
            "sacks of the year are counted and paid for.\n"
        )
        asked.append({"question": f"How many sacks does {name} grind?", "evidence": quote})
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)))
    assert main(["index", str(docs), "--out", str(folder / "index")]) == 0
    return folder


@pytest.fixture
def index(mills, tmp_path):
    return shutil.copytree(mills / "index", tmp_path / "index")


def test_what_is_learned_is_saved_with_the_index_and_used(mills, index, precise):
    code, out, _ = precise("adapt", index, "--questions", mills / "questions.jsonl", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["adapted"], told["says"]
    assert (told["questions"], told["place"]) == (PAGES, str(index))
    assert told["loss"]["low"] > 0
    assert load_index(index).adaptation.weights == told["weights"]
    code, out, _ = precise("ask", index, "How many sacks does Cilmar grind?", "--json")
    adapted = json.loads(out)["candidates"]
    code, out, _ = precise("ask", mills / "index", "How many sacks does Cilmar grind?", "--json")
    assert [c["score"] for c in adapted] != [c["score"] for c in json.loads(out)["candidates"]]
    code, out, _ = precise("adapt", index, "--forget")
    assert (code, out) == (0, "forgotten\n")
    assert load_index(index).adaptation is None
    assert precise("adapt", index, "--forget")[1] == "the index has no adaptation\n"


def test_what_is_learned_can_go_to_a_file(mills, index, tmp_path, precise):
    file = tmp_path / "adapted.json"
    code, out, _ = precise("adapt", index, "--questions", mills / "questions.jsonl", "--out", file)
    assert code == 0
    assert out.splitlines()[-1] == f"saved in {file}"
    assert load_index(index).adaptation is None
    assert Adaptation.load(file).n_questions == PAGES
    question = "How many sacks does Cilmar grind?"
    code, adapted, _ = precise("ask", index, question, "--reranker", file)
    assert code == 0
    assert adapted != precise("ask", index, question)[1]
    code, _, err = precise("adapt", index, "--out", tmp_path / "adapted.txt")
    assert (code, "--out must end in .json" in err) == (1, True)


def test_the_documents_ask_if_nobody_else_does(index, precise):
    code, out, err = precise("adapt", index)
    assert code == 0
    assert f"{PAGES} headings of {PAGES} documents are asked for" in err
    assert out.startswith(("adapted the ", "kept as it is, "))


def test_too_few_questions_change_nothing(mills, index, tmp_path, precise):
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join((mills / "questions.jsonl").read_text().splitlines()[:5]))
    before = (index / "manifest.json").read_bytes()
    code, _, err = precise("adapt", index, "--questions", few)
    assert code == 1
    assert "20 questions with evidence are needed to adapt anything, got 5 with evidence of 5" in err
    assert (index / "manifest.json").read_bytes() == before


def test_documents_without_headings_cannot_ask(folder, tmp_path, precise):
    index = shutil.copytree(folder / "index", tmp_path / "index")
    code, _, err = precise("adapt", index)
    assert code == 1
    assert "only 0 headings of the documents can be asked for; give your own questions" in err
    code, _, err = precise("adapt", tmp_path / "some.lance")
    assert code == 1
    assert "a database keeps no adaptation; give a file: --out adapted.json" in err
