from precise_rag.segmentation.word_pieces import WordPieces, split_words_and_marks, train_word_pieces


def test_words_are_split_into_the_longest_pieces() -> None:
    words = ["it", "'", "s", "你", "好", ",", "naïve", *"ตัว", "!"]
    assert split_words_and_marks("It's 你好, naïve ตัว!") == words
    pieces = WordPieces(["[UNK]", "play", "##ing", "##s", "p"])
    found = [pieces[word] for word in ("playing", "plays", "pz", "zzz")]
    assert found == [(1, 2), (1, 3), (4, 0), (0, 0, 0)]
    ids, offsets, counts = pieces.encode(["Playing plays", "", "x" * 1000])
    assert ids[:5].tolist() == [1, 2, 1, 3, 0]
    assert offsets.tolist() == [0, 4, 5, 133]
    assert counts.tolist() == [4, 1, 1000]


def test_frequent_words_become_one_piece() -> None:
    pieces = train_word_pieces(["the cat and the dog"] * 50 + ["zyzzyva"], 60)
    assert len(pieces["the"]) == len(pieces["cat"]) == 1 < len(pieces["zyzzyva"])
