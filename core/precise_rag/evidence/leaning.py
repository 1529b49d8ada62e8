"""Sentences that lean on the one before: they begin with a word for what was said, as "it" or "however"."""

import re
from typing import Literal

from precise_rag.structure.marks import TURN

Language = Literal["en", "de", "es", "fr", "ru"]
"""A language whose pronouns are known."""

_WORDS: dict[Language, tuple[str, ...]] = {
    "en": (
        "but|however|nevertheless|otherwise|instead|conversely|in contrast|on the other hand|yet",
        "he|she|it|they|him|this|that|these|those|his|her|hers|its|their|theirs|such|therefore|thus",
        "hence|moreover|furthermore|consequently|similarly|accordingly|meanwhile|also|so|then|as a result",
        "in other words|the (?:former|latter|same)",
        "(?:after|at|before|by|during|for|from|in|of|on|to|under|with|without) (?:th(?:is|at|ese|ose)|such)",
    ),
    "de": (
        "jedoch|aber|doch|allerdings|dennoch|trotzdem|dagegen|sonst|stattdessen",
        "er|sie|es|dies(?:e[rsmn]?)?|jene[rsmn]?|das (?:ist|sind|war|wird|hat|kann|gilt)|sein(?:e[rsmn]?)?",
        "ihr(?:e[rsmn]?)?|ihm|ihn(?:en)?|deren|dessen|deshalb|daher|darum|deswegen|dadurch|damit|dabei",
        "dafür|danach|daran|darauf|darin|darüber|davon|dazu|hier(?:bei|durch|für|mit|von|zu)|außerdem",
        "zudem|ferner|also|somit|folglich|solche[rsmn]?|letztere[rsmn]?|erstere[rsmn]?",
        "(?:an|auf|aus|bei|durch|für|in|mit|nach|ohne|unter|von|vor|während|zu) (?:dies|jen|solch)e[mnrs]?",
    ),
    "es": (
        "sin embargo|no obstante|pero|en cambio|aun así",
        "él|ella|ello|ellos|ellas|est[eao]s?|es[eao]s?|esto|eso|aquell[ao]s?|aquel|sus?|suy[ao]s?",
        "por (?:lo tanto|tanto|ello|consiguiente)|además|también|así|entonces|dich[ao]s?",
        "tal(?:es)?|l[ao]s? mism[ao]s?",
        "(?:a|bajo|con|desde?|durante|en|para|por|sin|sobre|tras) (?:est?[aeo]s?|dich[ao]s?|tal(?:es)?)",
    ),
    "fr": (
        "cependant|toutefois|néanmoins|pourtant|mais|or|au contraire",
        "il|elle|ils|elles|celui-ci|celle-ci|ceux-ci|celles-ci|ce|cet|cette|ces|cela|ceci|ça|c['’]est|son|sa",
        "ses|leurs?|lui|donc|ainsi|alors|en effet|de plus|en outre|par conséquent|ce dernier|cette dernière",
        "(?:à|après|avant|avec|dans|de|en|par|pendant|pour|sans|sur) (?:ce(?:la|s|t|tte)?(?! qu)|de tels)",
    ),
    "ru": (
        "однако|но|тем не менее|наоборот",
        "он[аои]?|это|эт(?:от|а|и|ого|ой|их|им|у)|так(?:ой|ая|ое|ие)|его|её|ее|их|ему|ей|им|поэтому",
        "следовательно|кроме того|также|затем|тогда|таким образом|последн(?:ий|яя|ее|ие)",
        "(?:без|в|во|для|до|из|на|от|по|под|после|при|с) (?:эт|так)(?:ого|ой|ом|ому|ую|им|ими|их|у)",
    ),
}
"""Words at the beginning of a sentence; the first ones take back some of what was said."""


def _first_words(*words: str) -> re.Pattern[str]:
    return re.compile(rf"[\W_]{{0,5}}(?:{'|'.join(words)})(?![\w-])".replace(" ", r"\s+"), re.IGNORECASE)


_LEANS = {language: _first_words(*words) for language, words in _WORDS.items()}
_TAKES_BACK = {language: _first_words(words[0]) for language, words in _WORDS.items()}
_COMMON: dict[Language, frozenset[str]] = {
    "en": frozenset(("the", "of", "and", "is", "to", "in", "that", "for")),
    "de": frozenset(("der", "die", "und", "ist", "nicht", "den", "von", "das", "mit", "ein", "eine")),
    "es": frozenset(("el", "los", "que", "una", "por", "con", "las", "del", "de", "la", "en")),
    "fr": frozenset(("les", "des", "est", "une", "dans", "pour", "du", "et", "de", "la", "le")),
    "ru": frozenset(("и", "в", "не", "на", "что", "с", "как", "по")),
}
_READ = 4_000
"""Characters from which a language is told."""


def language_of(text: str) -> Language:
    """Return the language of a text by its commonest words; English if it has none of them."""
    words = text[:_READ].lower().split()
    counts = {language: sum(word in common for word in words) for language, common in _COMMON.items()}
    return max(counts, key=counts.__getitem__)


def leans(text: str, language: Language = "en") -> bool:
    """Check whether a sentence begins with a word for what was said before: "it", "this", "however"."""
    return _LEANS[language].match(text) is not None and TURN.match(text) is None


def takes_back(text: str, language: Language = "en") -> bool:
    """Check whether a sentence takes back some of what was said before: "However, members pay nothing."."""
    return _TAKES_BACK[language].match(text) is not None
