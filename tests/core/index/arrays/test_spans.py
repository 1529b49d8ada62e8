import numpy as np

from precise_rag.index.arrays.spans import trim_spans


def test_spans_lose_the_white_space_at_their_ends() -> None:
    text = " One. \nTwo three.  "
    spans = np.array([[0, 7], [7, len(text)]])
    assert [text[start:end] for start, end in trim_spans(text, spans)] == ["One.", "Two three."]
