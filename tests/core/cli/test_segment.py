import json


def test_segment_prints_chunks_that_tile_the_file(folder, precise):
    file = folder / "docs" / "lamp.txt"
    code, out, _ = precise("segment", file, "--json")
    text = file.read_text()
    chunks = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert "".join(chunk["text"] for chunk in chunks) == text
    assert all(text[chunk["start"] : chunk["end"]] == chunk["text"] for chunk in chunks)


def test_segment_prints_the_headings_above_a_chunk(tmp_path, precise):
    file = tmp_path / "eels.md"
    file.write_text("# Eels\n\nThey come.\n\n## May\n\nNow.\n")
    _, out, _ = precise("segment", file, "--json", "--max-tokens", "8")
    paths = [json.loads(line).get("header_path") for line in out.splitlines()]
    assert paths == [None, "/Eels/"]
