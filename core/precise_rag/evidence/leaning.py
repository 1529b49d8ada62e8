"""Sentences that lean on the one before: they begin with a word for what was said, as "it" or "however"."""

import re
from typing import Literal

from precise_rag.structure.marks import TURN

Language = Literal["en", "de", "es", "fr", "ru"]
"""A language whose pronouns are known."""

_WORDS: dict[Language, tuple[str, ...]] = {
    "en": (
        "he|she|it|they|him|this|that|these|those|his|her|hers|its|their|theirs|such|however|therefore|thus",
        "hence|moreover|furthermore|nevertheless|consequently|otherwise|instead|conversely|similarly",
        "accordingly|meanwhile|also|but|so|then|yet|as a result|for this reason|in contrast|in other words",
        "on the other hand|the (?:former|latter|same)|in (?:this|that|such|these) (?:case|cases|way)",
    ),
    "de": (
        "er|sie|es|dies(?:e[rsmn]?)?|jene[rsmn]?|das (?:ist|sind|war|wird|hat|kann|gilt)|sein(?:e[rsmn]?)?",
        "ihr(?:e[rsmn]?)?|ihm|ihn(?:en)?|deren|dessen|jedoch|aber|doch|allerdings|dennoch|trotzdem|deshalb|daher",
        "darum|deswegen|dadurch|damit|dabei|dafür|dagegen|danach|daran|darauf|darin|darüber|davon|dazu",
        "hier(?:bei|durch|für|mit|von|zu)|außerdem|zudem|ferner|also|somit|folglich|sonst|stattdessen",
        "solche[rsmn]?|letztere[rsmn]?|erstere[rsmn]?|in diese[mnr] fall|aus diesem grund",
    ),
    "es": (
        "él|ella|ello|ellos|ellas|est[eao]s?|es[eao]s?|esto|eso|aquell[ao]s?|aquel|sus?|suy[ao]s?",
        "sin embargo|no obstante|por (?:lo tanto|tanto|ello|eso|esto|consiguiente)|además|también|así",
        "entonces|pero|en cambio|aun así|de este modo|en (?:este|ese|tal|estos|esos) casos?|dich[ao]s?",
        "tal(?:es)?|l[ao]s? mism[ao]s?",
    ),
    "fr": (
        "il|elle|ils|elles|celui-ci|celle-ci|ceux-ci|celles-ci|ce|cet|cette|ces|cela|ceci|ça|c['’]est|son|sa",
        "ses|leurs?|lui|cependant|toutefois|néanmoins|pourtant|donc|ainsi|alors|mais|or|en effet|de plus",
        "en outre|par conséquent|dans (?:ce|ces|de tels) cas|au contraire|ce dernier|cette dernière",
    ),
    "ru": (
        "он[аои]?|это|эт(?:от|а|и|ого|ой|их|им|у)|так(?:ой|ая|ое|ие)|его|её|ее|их|ему|ей|им|однако|поэтому",
        "но|тем не менее|следовательно|кроме того|также|затем|тогда|таким образом|наоборот",
        "последн(?:ий|яя|ее|ие)|в (?:этом|таком) случае",
    ),
}
_LEANS = {
    language: re.compile(rf"[\W_]{{0,5}}(?:{'|'.join(words)})(?![\w-])", re.IGNORECASE)
    for language, words in _WORDS.items()
}
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
