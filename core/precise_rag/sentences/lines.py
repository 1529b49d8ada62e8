"""Whether the lines of a paragraph are units, as those of a log or a price list, or wrapped sentences."""

import re
from collections import Counter
from collections.abc import Sequence

from precise_rag.structure.marks import CODE_LINE, CUE, STOPS, TIME, WIDE, in_columns

_FEWEST = 4
"""Lines of a paragraph whose lines can be units."""
_MANY = 8
"""Lines of a list that has no other sign of one than capitals, numbers or single words."""
_ALIKE = 0.8
"""Share of lines that begin alike."""
_SHARE_BROKEN_EARLY = 0.4
"""Share of lines that end although the next word would have fitted."""
_FEW = 0.2
_LONGEST = 400
"""Characters of a line that is one unit."""
_END_WITHIN = re.compile(
    r"[.!?](?<=[^\s\d_.(][^\s\d_.].)[)\"'”’]? +[\"'“‘(]?[^\W\d_a-z]"
    rf"|[{''.join(STOPS[4:])}։][」』”’）)]? *[^\s」』”’）)]"
)
_GOES_ON = re.compile(r"[,;\-–—/(，；、（]\Z")
_WORD = re.compile(rf"{WIDE.pattern}{{1,2}}|\S+")
"""What a line begins with that is not parted: of signs of full width two, as no line begins with a stop."""
_COMMENT = re.compile(r"\A(?:#+|;+|//+|--|%+|>[> \t]*|/?\*+/?(?=\s|\Z))[ \t]*")
_KEY = re.compile(r"[^\W\d][^\s:=]*[:=]\S*\Z|[^\s\w]*[=:>|]\Z")
"""A name with its sign, as in `port: 80` and `port = 80`, or the sign alone."""


def are_units(lines: Sequence[str]) -> bool:
    """Whether each line stands for itself.

    Lines do if some begin with a time, or nearly all alike with a number or a name with its sign; if they are
    many, as those of a list, see `_is_list`; or if most of them end before the width is used, and neither end
    nor begin as a sentence that goes on.

    lines: of one paragraph, without white space around them. A mark of comments before each is not read.
    """
    bare = [_COMMENT.sub("", line) for line in lines]
    lines = [line for line in bare if line] if 2 * sum(map(str.__ne__, bare, lines)) > len(lines) else lines
    if len(lines) < _FEWEST or any(map(CUE.match, lines)):
        return False
    (most, n_alike), *_ = Counter(map(beginning, lines)).most_common(1)
    is_log = sum(map(bool, map(TIME.match, lines))) >= max(_FEW * len(lines), _FEWEST - 1)
    if is_log or (n_alike >= _ALIKE * len(lines) and set(most) != {"word"}):
        return True
    sizes = [len(in_columns(line)) for line in lines]
    free = [max(sizes[max(i - 2, 0) : i + 3]) - size for i, size in enumerate(sizes)]
    breaks = [one for one in zip(lines, lines[1:], free, strict=False) if one[0][-1] not in STOPS]
    early = sum(len(in_columns(_WORD.findall(after)[0])) < space for _, after, space in breaks)
    if _is_list(lines, early > 1 or max(sizes) < 30):  # too narrow for text
        return True
    going_on = sum(_GOES_ON.search(line) is not None for line in lines)
    small = sum(after[0].islower() or WIDE.match(after) is not None for _, after, _ in breaks)
    is_wrapped = early < max(_SHARE_BROKEN_EARLY * len(breaks), _FEWEST - 1) or going_on > _FEW * len(lines)
    if is_wrapped or (small and any(map(_END_WITHIN.search, lines)) and not any(map(CODE_LINE.match, lines))):
        return False
    begins_sentence = lines[0][0].isupper() and lines[0][-1] != ":"
    return small <= _FEW * len(lines) or (len(breaks) == len(lines) - 1 and not begins_sentence)


def beginning(line: str) -> tuple[str, ...]:
    """What the first two words of a line are."""
    return tuple(
        "key" if _KEY.match(word) else "number" if any(map(str.isdigit, word)) else "word"
        for word in line.split(None, 2)[:2]
    )


def _is_list(lines: Sequence[str], is_unwrapped: bool) -> bool:
    """Whether many lines, few of which have an end, begin with a capital, have a number or are one word."""
    ends = [line for line in lines if line[-1] in STOPS or _END_WITHIN.search(line) or _GOES_ON.search(line)]
    if len(lines) < _MANY or len(ends) > _FEW * len(lines):
        return False
    n_begun = sum(line[0].isdigit() or (line[0].isupper() and not line.isupper()) for line in lines)
    n_numbered = sum(any(map(str.isdigit, line)) for line in lines)
    is_names = all(len(line.split()) == 1 and not WIDE.match(line) for line in lines)
    is_endless = len(lines) >= 2 * _MANY and len(ends) <= 0.05 * len(lines) and is_unwrapped
    return is_endless or n_begun >= 0.95 * len(lines) or n_numbered >= _ALIKE * len(lines) or is_names


def is_unit(line: str) -> bool:
    """Whether a line that stands for itself is one unit; sentences and long lines are split further."""
    words = line.strip()
    return len(words) <= _LONGEST and not words.endswith(STOPS)
