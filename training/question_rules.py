"""Weak questions, made by rule from plain text, so that the reranker learns from every domain.

Each rule takes a sentence and returns a question that it answers, or None. The grammar is rough.
"""

import re
from collections.abc import Callable

import numpy as np

from precise_rag.stems import QUESTION_WORDS, stem

Rule = Callable[[str, np.random.Generator], str | None]

_WORD = re.compile(r"[^\W_]+(?:['’.\-/][^\W_]+)*")
_YEAR = re.compile(
    r"\b(?:(in|on|since|until|by|from|during) )?(?:(?:early|late) )?(?:[A-Z][a-z]{2,8} )?"
    r"(?:\d{1,2},? )?(1[0-9]{3}|20[0-2][0-9])\b"
)
_NUMBER = re.compile(
    r"\b(\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|hundred|thousand) "
    r"([a-z]{3,}s)\b"
)
_NAME = re.compile(
    r"\b[A-Z][\w'’\-]+(?: (?:of|the|de|von|van|[A-Z][\w'’.\-]+))* [A-Z][\w'’\-]+|\b[A-Z][a-z]{2,}\b"
)
_PLACE = re.compile(r"\b(?:in|at|near|from) ((?:the )?[A-Z][\w'’\-]+(?: [A-Z][\w'’\-]+)*)")
_DEFINES = re.compile(
    r"^((?:(?:The|A|An) )?[\w'’\-]+(?: [\w'’\-]+){0,3}) (?:is|are|was|were|means|refers to|describes) "
    r"(?:a|an|the|one|any|to)\b"
)
_BECAUSE = re.compile(r"^(.{15,120}?),? (?:because|since|due to|in order to|so that|as a result of) ")
_SUBJECT = re.compile(
    r"^((?:The |A |An )?[A-Z][\w'’\-]+(?: [A-Z][\w'’\-]+)*) "
    r"((?:[a-z]+(?:ed|s)|was|were|is|are|had|has|can|made|gave|took|became|wrote|led|won) .*)$"
)
_PRONOUN = re.compile(r"^(?:He|She|It|They)\b")
_HE = re.compile(r"^(?:He|She|It|They|This|That|These|Those|There|We|You|I)\b")

_LONGEST = 14
"""Words in a question, at most."""


def defined(sentence: str, random: np.random.Generator) -> str | None:
    """ "A lattice is a …" → "What is a lattice?" """
    found = _DEFINES.match(sentence)
    if not found or _HE.match(sentence):
        return None
    what = found.group(1)
    what = what[0].lower() + what[1:] if what.split()[0] in ("The", "A", "An") else what
    return _one_of(("What is {}?", "What does {} mean?", "define {}", "{}", "what's {}"), random).format(what)


def subject(sentence: str, random: np.random.Generator) -> str | None:
    """ "Ada Byron wrote the first program." → "Who wrote the first program?" """
    found = _SUBJECT.match(sentence)
    if not found or _HE.match(sentence):
        return None
    rest = _shortened(found.group(2), random)
    asks = "Which" if found.group(1).startswith(("The ", "A ", "An ")) else _one_of(("Who", "What"), random)
    return f"{asks} {rest}?"


def year(sentence: str, random: np.random.Generator) -> str | None:
    """ "In 1931 the bridge was opened." → "When was the bridge opened?", roughly."""
    return _asked(_YEAR, sentence, ("When", "In what year", "what year"), random)


def number(sentence: str, random: np.random.Generator) -> str | None:
    """ "It has two towers." → "How many towers has it?", roughly."""
    found = _NUMBER.search(sentence)
    if not found:
        return None
    rest = _without(sentence, found.span())
    return f"How many {found.group(2)} {_shortened(rest, random)}?"


def place(sentence: str, random: np.random.Generator) -> str | None:
    """A sentence that names a place → "Where …?" """
    return _asked(_PLACE, sentence, ("Where", "In which place", "in what city or country"), random)


def name(sentence: str, random: np.random.Generator) -> str | None:
    """A name within the sentence → "Who …?" """
    found = [m for m in _NAME.finditer(sentence) if m.start() > 0]
    if not found:
        return None
    chosen = found[random.integers(len(found))]
    rest = _shortened(_without(sentence, chosen.span()), random)
    return f"{_one_of(('Who', 'Which', 'What', 'Whose'), random)} {rest}?"


def reason(sentence: str, random: np.random.Generator) -> str | None:
    """ "Bread was dear because …" → "Why was bread dear?", roughly."""
    found = _BECAUSE.match(sentence)
    return f"Why {_shortened(found.group(1), random)}?" if found else None


def topic(sentence: str, random: np.random.Generator) -> str | None:
    """Two to four content words in a row → "What about …?", "How does … work?" """
    words = _content(sentence)
    if len(words) < 4:
        return None
    first = random.integers(len(words) - 2)
    phrase = " ".join(words[first : first + random.integers(2, 5)])
    shapes = (
        "How does {} work?", "What about {}?", "How to {}", "What do they say about {}?", "Explain {}.",
        "What is said of {}?", "What happens with {}?", "How did {}?", "Why {}?",
    )  # fmt: skip
    return _one_of(shapes, random).format(phrase)


def keywords(sentence: str, random: np.random.Generator) -> str | None:
    """Three to six of the first content words, in any order."""
    words = list(dict.fromkeys(_content(sentence)))
    if len(words) < 4:
        return None
    how_many = int(random.integers(3, 7))
    chosen = words[: how_many + 1]
    return " ".join(random.permutation(chosen)[:how_many])


RULES: dict[str, tuple[float, Rule]] = {
    "defined": (3.0, defined),
    "subject": (2.0, subject),
    "year": (1.5, year),
    "number": (1.5, number),
    "place": (1.5, place),
    "name": (1.0, name),
    "reason": (3.0, reason),
    "topic": (0.6, topic),
    "keywords": (0.6, keywords),
}
"""The rules, with weights for the order in which they are tried."""


def question_from(sentence: str, random: np.random.Generator) -> str | None:
    """Make a question that the sentence answers, by one of the rules that apply."""
    names = list(RULES)
    weights = np.array([RULES[name][0] for name in names])
    for rule in random.choice(names, size=len(names), replace=False, p=weights / weights.sum()):
        if made := RULES[rule][1](sentence, random):
            return made
    return None


def about(sentence: str, title: str) -> str:
    """ "She died in Paris.", "Ada Byron (writer)" → "Ada Byron died in Paris." """
    return _PRONOUN.sub(lambda _: title.partition(" (")[0], sentence)


def as_typed(query: str, random: np.random.Generator) -> str:
    """Make a query sloppy at random: lower case, no question mark, last words left out."""
    if random.random() < 0.2:
        query = query.lower()
    if random.random() < 0.2:
        query = query.rstrip("?. ")
    words = query.split()
    if len(words) > 6 and random.random() < 0.1:
        query = " ".join(words[: int(random.integers(5, len(words)))])
    return query


def _asked(
    pattern: re.Pattern[str], sentence: str, shapes: tuple[str, ...], random: np.random.Generator
) -> str | None:
    found = pattern.search(sentence)
    if not found:
        return None
    return f"{_one_of(shapes, random)} {_shortened(_without(sentence, found.span()), random)}?"


def _without(sentence: str, span: tuple[int, int]) -> str:
    return f"{sentence[: span[0]]} {sentence[span[1] :]}"


def _shortened(text: str, random: np.random.Generator) -> str:
    """Take at most _LONGEST words in a row; in half of the cases some are left out."""
    words = _WORD.findall(text)
    length = int(random.integers(4, _LONGEST + 1))
    if len(words) > length:
        first = 0 if random.random() < 0.5 else int(random.integers(len(words) - length + 1))
        words = words[first : first + length]
    if random.random() < 0.5:
        words = [w for w in words if random.random() > 0.25] or words
    return " ".join(words)


def _content(text: str) -> list[str]:
    return [w for w in _WORD.findall(text) if len(w) > 2 and stem(w.casefold()) not in QUESTION_WORDS]


def _one_of(shapes: tuple[str, ...], random: np.random.Generator) -> str:
    return shapes[int(random.integers(len(shapes)))]
