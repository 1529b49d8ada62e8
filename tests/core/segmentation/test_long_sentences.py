from collections.abc import Sequence

import numpy as np

from precise_rag.segmentation.long_sentences import cut_long, cut_recounted, inside_words


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


def test_a_chunk_is_measured_as_a_whole_only_where_its_parts_meet_inside_a_word() -> None:
    text = "one twothree four"
    spans = np.array([[0, 7], [7, 13], [13, 17]])
    measured: list[str] = []

    def count(texts: Sequence[str]) -> list[int]:
        measured.extend(texts)
        return [9 for _ in texts]

    unsure = inside_words(text, spans)
    assert unsure.tolist() == [True, False]
    counts, gains = np.array([2, 2, 1]), np.array([-1.0, 1.0], np.float32)
    none = np.zeros(0, dtype=np.int64)
    cuts, lengths = cut_recounted(text, spans, counts, gains, none, unsure, 5, count)
    assert (cuts.tolist(), lengths.tolist()) == ([0, 1], [2, 2, 1])
    assert measured == [text, "one twothree "]


def test_many_cuts_take_few_rounds() -> None:
    n = 2000
    spans = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    read: list[int] = []

    def count(texts: Sequence[str]) -> list[int]:
        read.append(sum(map(len, texts)))
        return [len(text) if len(text) > 1 else 0 for text in texts]

    gains = -np.arange(n - 1, dtype=np.float32)
    none = np.zeros(0, dtype=np.int64)
    counts, unsure = np.zeros(n, dtype=np.int64), np.ones(n - 1, dtype=np.bool_)
    _, lengths = cut_recounted("x" * n, spans, counts, gains, none, unsure, 10, count)
    assert lengths.max() <= 10
    assert len(read) < 30
