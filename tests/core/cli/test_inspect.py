def test_a_document_is_shown_with_its_scores_and_chunks(precise, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text(
        "Yeast makes dough rise. The oven is hot. In 1969 two men walked on the Moon. They took rocks home."
    )
    code, shown, _ = precise("inspect", file, "--max-tokens", "20")
    assert code == 0
    assert "max_tokens 20" in shown
    assert "── chunk 1" in shown
    out = tmp_path / "a.html"
    assert precise("inspect", file, "--html", out, "--threshold", "0.9") == (0, f"{out}\n", "")
    assert "threshold 0.9" in out.read_text()


def test_a_missing_or_empty_document_is_named(precise, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text(" ")
    code, _, error = precise("inspect", file, "--document", "b")
    assert code == 1
    assert "has no document 'b'" in error
    code, _, error = precise("inspect", file)
    assert code == 1
    assert "is empty; there is nothing to inspect" in error


def test_two_splitters_are_compared(precise, tmp_path):
    file = tmp_path / "a.md"
    file.write_text("# Eels\n\n" + "The traps are lifted at dawn. Oak is heavy when wet.\n\n" * 200)
    code, shown, _ = precise("inspect", file, "small", "langchain:RecursiveCharacterTextSplitter")
    assert code == 0
    assert "A = small: " in shown
    assert "── A1 (" in shown
    assert " · B1 (" in shown
    assert "B2 (" in shown
    out = tmp_path / "a.html"
    assert precise("inspect", file, "small", "llamaindex:SentenceSplitter", "--html", out)[0] == 0
    assert "<h2>llamaindex:SentenceSplitter</h2>" in out.read_text()


def test_unknown_splitters_are_one_clear_error(precise, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("One. Two.")
    code, _, error = precise("inspect", file, "small", "langchain:Nothing")
    assert code == 1
    assert "stock splitter must be one of langchain:RecursiveCharacterTextSplitter" in error
    code, _, error = precise("inspect", file, "small")
    assert code == 1
    assert "name two splitters to compare" in error
    code, _, error = precise("inspect", file, "small", "nothing")
    assert code == 1
    assert "no segmentation model 'nothing'" in error
