"""Splitters of this and other libraries by name."""

import pytest

from precise_rag.errors import InputError
from precise_rag.evaluation import load_splitter
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

TEXT = (
    "The mill stands by the river. Its wheel turns slowly.\n\n"
    "Bread is baked on Fridays. The oven is old. Rye keeps longest.\n\n"
    "The inn closed in March. Nobody minds."
)
DOCUMENT = Document("d", TEXT)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("langchain-recursive", {"chunk_size": 12}),
        ("llamaindex-sentence", {"chunk_size": 30}),
        ("sentences", {}),
        ("precise", {}),
        ("precise-greedy", {}),
    ],
)
def test_splitters_cover_the_text_and_know_where(name: str, options: dict[str, int]) -> None:
    units = load_splitter(name, HashEncoder(), **options)(DOCUMENT)
    assert all("".join(TEXT[u.start : u.end].split()) == "".join(u.text.split()) for u in units)
    assert "".join("".join(u.text for u in units).split()) == "".join(TEXT.split())


def test_the_sentence_window_scores_one_sentence_and_returns_its_neighbours() -> None:
    units = load_splitter("llamaindex-window", HashEncoder(), window_size=1)(DOCUMENT)
    wheel = next(u for u in units if "wheel" in u.text)
    assert wheel.text.strip() == "Its wheel turns slowly."
    assert TEXT[wheel.start : wheel.end].split()[0] == "The"
    assert TEXT[wheel.start : wheel.end].endswith("Fridays.")


def test_unknown_splitters_and_options() -> None:
    with pytest.raises(InputError, match="langchain-recursive"):
        load_splitter("nltk", HashEncoder())
    with pytest.raises(InputError, match="colour"):
        load_splitter("langchain-recursive", HashEncoder(), colour=3)
