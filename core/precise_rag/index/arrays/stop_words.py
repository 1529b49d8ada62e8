"""Stop words: words too common to search by."""

from dataclasses import dataclass
from typing import Literal

from precise_rag._extras import require
from precise_rag.checks import items_of, shown
from precise_rag.errors import InputError

_ENGLISH = """
    a an the this that these those such some any all both each every either neither no none not nor
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself
    she her hers herself it its itself they them their theirs themselves one ones
    who whom whose which what when where why how there here then
    am is are was were be been being do does did doing done have has had having
    can could may might must shall should will would
    and or but if because as until while although though than so
    of at by for with about against between into through during before after above below to from
    up down in out on off over under again further upon within without
    only own same too very just also more most other few s t d ll m re ve
"""


@dataclass(frozen=True, kw_only=True)
class WordSettings:
    """Settings of indexes that compare words.

    stop_words: words to leave out; see `load_stop_words`.
    filter_statistics: in a search with a filter, what decides how rare a word is and how long a text:
        "shared", all documents; or "matching", only those that meet the filter, as if there were no
        others. Choose "matching" if a user must learn nothing from documents that the filter keeps out;
        the first search with each filter then takes time in proportion to what meets it.
    """

    stop_words: str | tuple[str, ...] = "english"
    filter_statistics: Literal["shared", "matching"] = "shared"

    def __post_init__(self) -> None:
        if self.filter_statistics not in ("shared", "matching"):
            raise InputError(
                f"filter_statistics must be 'shared' or 'matching', got {shown(self.filter_statistics)}"
            )
        if isinstance(self.stop_words, list):  # from JSON
            object.__setattr__(self, "stop_words", tuple(self.stop_words))
        if not isinstance(self.stop_words, str):
            words = tuple(items_of("stop_words", self.stop_words, str))
            object.__setattr__(self, "stop_words", words)


def load_stop_words(source: str | tuple[str, ...]) -> frozenset[str]:
    """Return a set of stop words, in lower case.

    source: "english"; "none"; "nltk:german" for a list of the NLTK corpus; or the words themselves.
    Raises InputError if NLTK has no list of that name, and MissingExtra without NLTK.
    """
    if not isinstance(source, str):
        return frozenset(word.lower() for word in source)
    if source == "english":
        return frozenset(_ENGLISH.split())
    if source == "none":
        return frozenset()
    library, _, language = source.partition(":")
    if library != "nltk" or not language:
        raise InputError(
            f"stop_words must be 'english', 'none', 'nltk:LANGUAGE' or a tuple of words, got {source!r}"
        )
    corpus = require("nltk.corpus", extra="nltk").stopwords
    try:
        return frozenset(corpus.words(language))
    except (LookupError, OSError) as error:
        raise InputError(
            f"NLTK has no stop words for {language!r}; run: python -m nltk.downloader stopwords"
        ) from error
