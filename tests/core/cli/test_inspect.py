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
