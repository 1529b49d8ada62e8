import numpy as np

from precise_rag.segmentation.long_sentences import cut_long


def test_long_sentences_are_halved_between_words() -> None:
    text = "one two three four. five"
    spans, counts = np.array([[0, 20], [20, 24]]), np.array([4, 1])
    rows, lengths, owners = cut_long(text, spans, counts, 2, lambda texts: [len(t.split()) for t in texts])
    assert [text[a:b] for a, b in rows.tolist()] == ["one two ", "three four. ", "five"]
    assert (lengths.tolist(), owners.tolist()) == ([2, 2, 1], [0, 0, 1])


def test_white_space_is_split_off_only_where_it_does_not_fit() -> None:
    def pieces(text: str, limit: int) -> list[str]:
        rows = cut_long(
            text, np.array([[0, len(text)]]), np.array([len(text)]), limit, lambda t: list(map(len, t))
        )[0]
        return [text[a:b] for a, b in rows.tolist()]

    assert pieces(" 01:01:000000", 7) == [" 01:01:", "000000"]
    assert pieces("gas" + " " * 6, 4) == ["gas", "   ", "   "]
    assert pieces("a  ", 1) == ["a", " ", " "]
