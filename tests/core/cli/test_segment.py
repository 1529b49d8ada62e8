import json

from precise_rag.documents import reading


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


def test_a_file_is_cut_before_the_next_is_read(tmp_path, precise, monkeypatch):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"This is {name}.")
    seen = []
    monkeypatch.setattr("precise_rag.cli.segment.show", lambda line: seen.append(line))
    read_bytes = reading.read_bytes

    def read(file, *rest):
        seen.append(file.name)
        return read_bytes(file, *rest)

    monkeypatch.setattr(reading, "read_bytes", read)
    assert precise("segment", tmp_path)[0] == 0
    assert [line for line in seen if "──" not in line] == [
        "a.txt",
        "This is a.txt.",
        "b.txt",
        "This is b.txt.",
    ]
