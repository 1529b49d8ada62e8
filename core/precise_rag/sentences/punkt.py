"""NLTK's Punkt sentence splitter. Its data must be on disk; nothing is downloaded."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from precise_rag._extras import require
from precise_rag.errors import ModelError

_FOLDER = Path("tokenizers", "punkt_tab", "english")
_FILES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")


def load_punkt(path: str | Path | None = None) -> tuple[str, Callable[[str], Iterable[int]]]:
    """Load Punkt with its English data.

    path: folder with Punkt's English data, or an NLTK data folder that contains it; by default
    NLTK's data folders and llama-index-core are searched.
    Returns the name with the version, and a function from a text to the ends of its sentences.
    Raises MissingExtra without NLTK, ModelError without the data.
    """
    nltk = require("nltk", extra="nltk")
    punkt = require("nltk.tokenize.punkt", extra="nltk")
    folder = _find_data(path, nltk.data.path)
    parameters = punkt.PunktParameters()
    parameters.abbrev_types = {row[0] for row in _rows(folder, "abbrev_types.txt")}
    parameters.collocations = {(row[0], row[1]) for row in _rows(folder, "collocations.tab")}
    parameters.sent_starters = {row[0] for row in _rows(folder, "sent_starters.txt")}
    parameters.ortho_context.update({row[0]: int(row[1]) for row in _rows(folder, "ortho_context.tab")})
    return f"punkt-{nltk.__version__}", partial(_ends, punkt.PunktSentenceTokenizer(parameters))


def _ends(tokenizer: Any, block: str) -> Iterable[int]:
    return [end for _, end in tokenizer.span_tokenize(block)]


def _rows(folder: Path, name: str) -> list[list[str]]:
    lines = (folder / name).read_text(encoding="utf-8").split("\n")
    return [line.split("\t") for line in lines if line]


def _find_data(path: str | Path | None, nltk_paths: Iterable[str]) -> Path:
    if path is not None:
        given = Path(path)
        places = [given, given / "english", given / "punkt_tab" / "english", given / _FOLDER]
    else:
        places = [Path(place) / _FOLDER for place in nltk_paths]
        places += [place / _FOLDER for place in _llama_index_caches()]
    for place in places:
        if all((place / name).is_file() for name in _FILES):
            return place
    where = str(path) if path is not None else "NLTK's data folders or llama-index-core"
    raise ModelError(
        f"no English punkt_tab data found in {where}; run `python -m nltk.downloader punkt_tab`, "
        "or pass path=, the folder with abbrev_types.txt"
    )


def _llama_index_caches() -> Iterator[Path]:
    package = find_spec("llama_index")
    for place in (package.submodule_search_locations or ()) if package else ():
        yield Path(place, "core", "_static", "nltk_cache")
