import json


def test_segment_prints_chunks_that_tile_the_file(folder, precise):
    file = folder / "docs" / "lamp.txt"
    code, out, _ = precise("segment", file, "--json")
    text = file.read_text()
    chunks = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert "".join(chunk["text"] for chunk in chunks) == text
    assert all(text[chunk["start"] : chunk["end"]] == chunk["text"] for chunk in chunks)
