"""Transcripts and chats."""

import pytest

from precise_rag.structure import read_structure
from support.structures import kinds


def test_lines_that_nobody_says_are_titles_of_a_transcript() -> None:
    said = "Ilse: Look at the oil, please\n\nJonas B: I did.\n\n"
    text = f"{said * 2}What the oil costs\n\n{said}He left.\n\n{said}and more\n\n{said}Wicks, etc.\n\n{said}"
    found = read_structure(text)
    assert [text[block.start : block.end] for block in found.blocks if block.kind == "heading"] == [
        "What the oil costs\n\n",
        "Wicks, etc.\n\n",
    ]
    assert found.heading_path(text.index("He left")) == ("What the oil costs",)


@pytest.mark.parametrize(
    "stamp",
    [
        *("09:12 ", "[09:12] ", "[2024-03-01 09:12:33] ", "2024-03-01T09:12:33.500 "),
        *("01/03/2024, 09:12 - ", "[01.03.24, 9:12:33 PM] ", "00:00:03 "),
    ],
)
def test_turns_of_a_chat_begin_with_a_time(stamp: str) -> None:
    lines = [f"{stamp}{name} eels: {i}\n" for i, name in enumerate(("anna:", "ben_2:") * 4)]
    assert kinds(read_structure("".join(lines))) == ["turn"] * 8
    lines = [f"{stamp}<{name}> eels: {i}\n" for i, name in enumerate(("anna", "ben_2") * 4)]
    assert kinds(read_structure("".join(lines))) == ["turn"] * 8
    assert "turn" not in kinds(read_structure("".join(line.removeprefix(stamp) for line in lines)))


@pytest.mark.parametrize("label", ["{}:", "**{}:**", "**{}**:", "<p>{}:", "<p><b>{}:</b>", "  <p>{}:"])
def test_turns_begin_with_a_label_also_with_marks(label: str) -> None:
    end = "</p>" if "<" in label else ""
    said = [f"{label.format(name)} They come in May,\nor later.{end}" for name in ("Ilse", "Jonas B") * 4]
    text = "\n\n".join(said)
    found = read_structure(text)
    assert kinds(found) == ["turn"] * 8
    assert [text[block.start : block.end].strip() for block in found.blocks] == [one.strip() for one in said]
