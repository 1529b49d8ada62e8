from pathlib import Path

import pytest

from precise_rag.errors import ModelError
from precise_rag.sentences.punkt import load_punkt


def test_the_ends_of_sentences_are_found() -> None:
    name, ends = load_punkt()
    assert name.startswith("punkt-")
    assert list(ends("Dr. Smith left. He ran.")) == [15, 23]


def test_missing_data_raises(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nltk\.downloader punkt_tab"):
        load_punkt(tmp_path)
