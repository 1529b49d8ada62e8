"""What a sentence needs beside it to be understood: what it leans on, its lead-in, what it announces.

"However, it froze."       the sentence before it, and that one needs it: without it, it is half of the truth
an item, code, a table     the lead-in above it: "Three parts wear:"; code, any sentence
an item of a short list    the other items, of a list that is announced or below a heading; not as much
"Three parts wear:"        the list, code or table that follows
a term alone               the first sentence of its meaning
a sentence of an item      the first sentence of the item, such as a term or an option
"Is it open? Till 6. Ring" the question that begins a paragraph, and that one its answer
"Ann: When do we meet?"    the turn that follows, or in nested data the value; a short turn is sent whole
a question                 what is said first below a heading that comes again, as a speaker does
a line below a name        the name, of lines without a blank one: "COWL", above "Cast on 168 sts."
"Name: Ann"                the other fields of a short record; of a long one, each field the first line
what is below a heading    the short fields right below it, "Default: 300"; those, what is said after them
"# The port. It is open."  the setting right below the comment, also if that is commented out: "#port=80"
"03:14:09 job 204 failed"  the lines of its entry in a log that name errors: "OSError: No space left"
"It costs 12 euros[^fee]." the note: "[^fee]: Members pay 8.", and the note what it is about
a quote                    the reply that follows, and the reply the quote
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, groupby, islice, pairwise, product, starmap, takewhile
from typing import NamedTuple

import numpy as np

from precise_rag._data import packaged_toml
from precise_rag.evidence.records import records
from precise_rag.sentences.lines import beginning
from precise_rag.stems import QUESTION_WORDS, read_words
from precise_rag.structure import Block, BlockKind, heading_title, read_structure
from precise_rag.structure.marks import FIELD, TIME, TURN, WHEN, ends_in_colon, ends_sentence
from precise_rag.types import FloatArray, Stretch

LONGEST_BEFORE = 60
"""Most tokens of a sentence that is taken along because another one leans on it."""
LONGEST_ANNOUNCED = 150
"""Most tokens that are taken along because a lead-in announces them."""
LONGEST_SECTION = 240
"""Most tokens of a section, entry, record or table that are taken along: the question is about it."""
_OTHER_ITEMS = 0.75
"""How likely the other items of a short list are, as a share of what one of them is."""
_ANNOUNCED: tuple[BlockKind, ...] = ("item", "code", "table", "quote")
_BESIDE_ITEMS: tuple[BlockKind, ...] = ("code", "table", "quote")
_POINTS_BELOW = re.compile(
    r"(?i)\b(?:follow(?:ing|s\b)|below|here (?:is|are)\b|folgende|unten|hier (?:ist|sind|folg)|siguiente"
    r"|a continuación|suivant|ci-dessous|voici|следующ|ниже|вот )"
)
_NOTE = re.compile(
    r"\[\^([\w-]{1,40})\]:|\.\. \[(#[\w-]{0,40})\]|([¹²³⁴-⁹])|\\?(\*{1,3}|[†‡])[ \t)]*\w"
    r"|[^\n]{0,400}\(#(?:footnote-?|fn|note)ref[-:]?([\w-]{1,40})\)"
)
_NOTE_MARK = re.compile(
    r"\[\^([\w-]{1,40})\](?!:)|\[(#[\w-]{0,40})\]_|(?<=[\w.,;!?)])([¹²³⁴-⁹])"
    r"|(?<=[\w)%])\\?(\*{1,3}|[†‡])(?=[\s|,.;:)]|\Z)"
    r"|\]\(#(?:footnote-?|fn|note)(?!-?ref)[-:]?([\w-]{1,40})\)"
)
"""The beginning of a note, and the mark of one: in Markdown, reStructuredText, print, and as links."""
_EMPHASIS = re.compile(r"(?<![\w\\*])\*{1,3}[^\s*]")
_CALLOUT = re.compile(r"[> \t]*(?:\[!|\*\*|\w+:)")
"""What begins a quote that says something of its own, as a note in Markdown does."""
_COMMENT = re.compile(r"(?:#{1,9}|;{1,9}|//|--)[ \t]")
_ERROR = re.compile(r"(?:Caused by|[A-Za-z][\w.$]{2,99}): ")
_QUESTION_MARKS = "?", "？", "؟"
_ASKS = re.compile(rf"[\s{{\[,]{{0,100}}\"[^\n]{{0,400}}[?？؟]\"|{WHEN.pattern}[^\n]{{1,400}}[?？؟]\"?\Z")
"""A value of nested data, or a row with a time, that asks."""
_BELOW_HEADING, _WHOLE_TURN = 16, 240
"""Sentences below a heading that its fields are about, and characters of a turn that is sent whole."""
_BARE = 2
"""Most words of a lead-in that says nothing of its own, such as "For example:"."""
_PROSE: tuple[BlockKind, ...] = ("paragraph", "item", "quote", "turn")


def _first_words(*words: str) -> re.Pattern[str]:
    return re.compile(rf"[\W_]{{0,5}}(?:{'|'.join(words)})(?![\w-])".replace(" ", r"\s+"), re.IGNORECASE)


_WORDS = packaged_toml("evidence/leaning.toml")
_TAKES_BACK = {language: _first_words(words["takes_back"]) for language, words in _WORDS.items()}
_LEANS = {language: _first_words(words["takes_back"], *words["leans"]) for language, words in _WORDS.items()}
_COMMON = {language: frozenset(words["common"].split()) for language, words in _WORDS.items()}


class _Sentence(NamedTuple):
    """A sentence with the block that it stands in.

    title: the last one above it; "" of a row of a table. leans: whether it leans on the sentence before it.
    takes_back: whether it takes back some of that.
    """

    text: str
    n_tokens: int
    block: Block
    title: str
    leans: bool
    takes_back: bool

    @property
    def is_short(self) -> bool:
        return self.n_tokens <= LONGEST_BEFORE


class Need(NamedTuple):
    """Who sends the sentence of a row sends the needed one, too, which is `share` times as likely then."""

    row: int
    needed: int
    share: float = 1.0


def needs(stretch: Stretch) -> Iterator[Need]:
    """Yield what the sentences of a stretch need.

    A sentence that another one leans on is needed if it is short and leans on none itself.
    """
    sentences = _sentences(stretch)
    in_records = chain.from_iterable(_fields(record, sentences) for record in records(stretch))
    several = _notes(sentences), in_records, _settings(sentences), _cards(sentences), _beside(sentences)
    yield from starmap(Need, chain(_names(stretch, sentences), *several))
    yield from (Need(*pair, _OTHER_ITEMS) for pair in _items(sentences))


def _beside(sentences: Sequence[_Sentence]) -> Iterator[tuple[int, int]]:
    """What each sentence needs of those near it, and its block of the block before."""
    lead_ins = _lead_ins(sentences)
    first_of_block = 0
    for row in range(1, len(sentences)):
        sentence, before = sentences[row], sentences[row - 1]
        kind = sentence.block.kind
        begins_block = sentence.block != before.block
        first_of_block = row if begins_block else first_of_block
        if "heading" in (kind, before.block.kind):
            continue
        is_reply = begins_block and _replies(sentence, before)
        if is_reply or _leans_on(sentence, before):
            yield row, row - 1
        if sentence.is_short and (is_reply or (sentence.takes_back and not begins_block)):
            yield row - 1, row
        yield from _said_with(row, sentence, before)
        asks = sentences[first_of_block].text.rstrip("*_").endswith(_QUESTION_MARKS)
        if kind == "paragraph" and asks and sentence.is_short and row == first_of_block + 1:
            yield row - 1, row
        if begins_block and sentence.title and sentence.title == heading_title(before.text):
            yield row - 1, row
        elif begins_block:
            leads = list(_announcing(row, sentences))
            yield from ((lead, after) for after in _announced(row, sentences) for lead in leads)
        first = first_of_block if kind == "item" or (kind == "paragraph" and asks) else None
        needed = lead_ins[row] if begins_block or kind == "code" else first
        if needed is not None and sentences[needed].is_short:
            yield row, needed


def of_entry(stretch: Stretch, row: int) -> Iterator[Need]:
    """What an entry's beginning, a heading, a table's head or a comment needs: LONGEST_SECTION below it."""
    first, *rest = stretch.sentences[row:]
    is_comment = [one.above for one in rest[:2]] == [first.above[:-1], first.above] != [()] * 2
    head, inside = (rest[0], first) if is_comment else (first, next(iter(rest), first))
    path = inside.above[: len(head.above) + 1]
    is_entry = head.above == path[:-1] != path
    below = takewhile(lambda one: one is head or (is_entry and one.above[: len(path)] == path), rest)
    sizes = accumulate(0 if one is head else one.n_tokens or 0 for one in below)
    for after, _ in enumerate(takewhile(LONGEST_SECTION.__ge__, sizes), row + 1):
        yield Need(row, after)


def of_section(query: str, stretch: Stretch, worth: FloatArray) -> Iterator[Need]:
    """What the likeliest sentence of a section needs: all of it if it is short, and named or among the best.

    worth: the probability of each sentence. A section has at most half of the sentences of the stretch. It is
        named if its title has only words of the query, and then short if it has at most 240 tokens. Otherwise
        its likeliest sentence is at least half as likely as the best one, and it has at most 150.
    """
    asked = frozenset(read_words(query).stems)
    sections: dict[tuple[str, ...], list[int]] = {}
    for row, one in enumerate(stretch.sentences):
        for end in range(1, len(one.above) + 1):
            sections.setdefault(one.above[:end], []).append(row)
    for path, rows in sections.items():
        title = {*filter(str.isalpha, read_words(path[-1]).stems)} - QUESTION_WORDS
        is_named = title and title <= asked
        best = max(rows, key=worth.__getitem__)
        is_likely = 2 * worth[best] >= worth.max() and stretch.sentences[best].above == path
        longest = LONGEST_SECTION if is_named else LONGEST_ANNOUNCED if is_likely else 0
        size = sum(stretch.sentences[row].n_tokens or 0 for row in rows)
        if 2 * len(rows) <= len(stretch.sentences) and size <= longest:
            yield from (Need(best, row) for row in rows)


def _items(sentences: Sequence[_Sentence]) -> Iterator[tuple[int, int]]:
    """Each two items of a list of at most LONGEST_ANNOUNCED tokens, announced or below a heading."""
    for row in range(1, len(sentences)):
        block, before = sentences[row].block, sentences[row - 1].block
        is_first = before.kind != "item" or block.level > before.level
        is_led = before.kind == "heading" or _announces(sentences[row - 1], block)
        if block.kind == "item" and is_first and is_led:
            listed = [*_announced(row, sentences)]
            if listed and not _goes_on(row, listed[-1] + 1, sentences):
                yield from product(listed, listed)


def _names(stretch: Stretch, sentences: Sequence[_Sentence]) -> Iterator[tuple[int, int]]:
    """The sentences of a paragraph, and the name above them: its first line, in capitals or unlike others.

    Below others that begin as that one does, the last of these is it, as the head of a table below a title.
    """
    origin = stretch.sentences[0].start
    gaps = [stretch.text[one.end - origin : two.start - origin] for one, two in pairwise(stretch.sentences)]
    for block, group in groupby(range(len(sentences)), lambda row: sentences[row].block):
        first, *below = group
        name = sentences[first]
        is_line = below and "\n" in gaps[first] and "\n" not in name.text and not ends_sentence(name.text)
        if block.kind != "paragraph" or not is_line or not name.is_short:
            continue
        alike = {row for row in below if beginning(sentences[row].text) == beginning(name.text)}
        if name.text.isupper() or 5 * len(alike) <= len(below):
            for row in below:
                yield row, first
                is_name = row in alike and not (name.text.isupper() or ends_sentence(sentences[row].text))
                first = row if is_name else first


def _said_with(row: int, sentence: _Sentence, before: _Sentence) -> Iterator[tuple[int, int]]:
    """The two sentences of a short turn, or a question and what is said after it; in data, the next value."""
    block = sentence.block
    if block == before.block and block.kind == "turn" and block.end - block.start <= _WHOLE_TURN:
        yield from ((row, row - 1), (row - 1, row))
    is_question = before.text.endswith(_QUESTION_MARKS)
    if sentence.is_short and (is_question if block.kind == "turn" else _ASKS.match(before.text)):
        yield row - 1, row


def _replies(sentence: _Sentence, before: _Sentence) -> bool:
    """Whether a sentence replies to the quote before it, or ends it on a new page; both are short."""
    is_quoted = before.block.kind == "quote" and not _CALLOUT.match(before.text)
    goes_on = sentence.text.lstrip()[:1].islower() and not ends_sentence(before.text)
    is_rest = goes_on and before.block.end < sentence.block.start
    is_reply = is_quoted and sentence.block.kind == "paragraph"
    return (is_rest or is_reply) and sentence.is_short and before.is_short


def _notes(sentences: Sequence[_Sentence]) -> Iterator[tuple[int, int]]:
    short = ((row, sentence.text) for row, sentence in enumerate(sentences) if sentence.is_short)
    starts = [(row, start.groups()) for row, text in short if (start := _NOTE.match(text))]
    counts = Counter(name for _, name in starts)
    notes = {name: row for row, name in starts if counts[name] == 1 or not name[3]}
    marked: dict[int, list[int]] = {}
    for row, sentence in enumerate(sentences if notes else ()):
        for mark in _NOTE_MARK.finditer(sentence.text):
            is_mark = not (mark[4] and _EMPHASIS.search(sentence.text))
            if is_mark and notes.get(mark.groups(), row) != row:
                marked.setdefault(notes[mark.groups()], []).append(row)
    for note, rows in marked.items():
        yield from ((row, note) for row in rows)
        if len(rows) == 1 and sentences[rows[0]].is_short:
            yield note, rows[0]


def _fields(record: range, sentences: Sequence[_Sentence]) -> Iterator[tuple[int, int]]:
    in_log = record[1:] if TIME.match(sentences[record[0]].text) else ()
    errors = [row for row in in_log if _ERROR.match(sentences[row].text)][-3:]  # the last name the cause
    is_short = sum(sentences[row].n_tokens for row in record) <= LONGEST_SECTION
    needed = record if is_short and not errors else record[:1]
    yield from ((row, other) for row in record for other in needed if row != other)
    yield from ((record[0], row) for row in errors)


def _cards(sentences: Sequence[_Sentence]) -> Iterator[tuple[int, int]]:
    """What the fields below a heading or term, what is said with them, and a question above need: `needs`.

    The fields are the first below it, or else the last.
    """
    is_field = [
        bool(FIELD.match(one.text)) and (one.text.count(" ") < 3 or not ends_sentence(one.text))
        for one in sentences
    ]
    kinds = [(one.title, one.block.kind == "heading") for one in sentences]
    counts = Counter(one.text for one in sentences if one.block.kind == "heading")
    for _, group in groupby(range(len(sentences)), kinds.__getitem__):
        rows = [*islice(group, _BELOW_HEADING)]
        card = [*takewhile(is_field.__getitem__, rows)] or [*takewhile(is_field.__getitem__, rows[::-1])]
        said = [row for row in rows if row not in card]
        title = kinds[rows[0]][0]
        is_term = title != "" and rows[0] > 0 and heading_title(sentences[rows[0] - 1].text) == title
        is_below = rows[0] > 0 and (kinds[rows[0] - 1][1] or is_term)
        asks = rows[0] > 1 and sentences[rows[0] - 2].text.endswith(_QUESTION_MARKS)
        if is_below and asks and counts[sentences[rows[0] - 1].text] > 1:
            yield rows[0] - 2, rows[0]
        if said and is_below and sum(sentences[row].n_tokens for row in card) <= LONGEST_ANNOUNCED:
            yield from product(said, card)
            yield from ((row, said[0]) for row in card if sentences[said[0]].is_short)


def _settings(sentences: Sequence[_Sentence]) -> Iterator[tuple[int, int]]:
    """The setting right below a comment, which each sentence of the comment needs, see `needs`."""
    comment: list[int] = []
    for row, sentence in enumerate(sentences):
        if sentence.block.kind != "paragraph" or sentence.block != sentences[row - 1].block:
            comment = []
        if _COMMENT.match(sentence.text) or (comment and ends_sentence(sentence.text)):
            comment.append(row)
        else:
            yield from ((before, row) for before in comment if sentence.is_short)
            comment = []


def _lead_ins(sentences: Sequence[_Sentence]) -> list[int | None]:
    """For each sentence the row of the lead-in of its block; None for a block without one.

    An item of a list whose lead-in is further above has that one, also after code or a table in the list.
    """
    lead_ins: list[int | None] = [0]
    lists: dict[int, int] = {}
    """Of the lists that may go on, the level of the items, and the row of the lead-in."""
    for row in range(1, len(sentences)):
        block, before = sentences[row].block, sentences[row - 1].block
        if "heading" in (block.kind, before.kind):
            lists = {}
            lead_ins.append(None)
        elif block == before:
            lead_ins.append(lead_ins[-1])
        else:
            is_item, is_code = block.kind == "item", block.kind == "code" and before.kind in _PROSE
            is_led = is_code or _announces(sentences[row - 1], block)
            if is_item:
                while lists and next(reversed(lists)) > block.level:
                    lists.popitem()
            elif block.kind not in _BESIDE_ITEMS:
                lists = {}
            if is_led and is_item and (before.kind != "item" or block.level > before.level):
                lists[block.level] = row - 1
            lead = next(reversed(lists.values()), None) if is_item else None
            lead_ins.append(row - 1 if is_led and lead is None else lead)
    return lead_ins


def _sentences(stretch: Stretch) -> list[_Sentence]:
    origin = stretch.sentences[0].start
    structure = read_structure(stretch.text)
    starts = np.array([sentence.start - origin for sentence in stretch.sentences], dtype=np.int64)
    blocks = [structure.blocks[number] for number in structure.block_numbers(starts).tolist()]
    language = language_of(stretch.text)
    return [
        _Sentence(
            one.text,
            one.n_tokens or 0,
            block,
            "" if block.kind == "table" else (structure.above(start) or ("",))[-1],
            block.kind in _PROSE and leans(one.text, language),
            block.kind in _PROSE and takes_back(one.text, language),
        )
        for one, block, start in zip(stretch.sentences, blocks, starts.tolist(), strict=True)
    ]


def _leans_on(sentence: _Sentence, before: _Sentence) -> bool:
    """Whether a sentence leans on the one before it, which is short, leans on none and leads to its block."""
    kind = sentence.block.kind
    goes_on = kind != "item" and before.block.kind in (kind, "paragraph")
    goes_on = goes_on or sentence.block == before.block
    return sentence.leans and goes_on and not before.leans and before.is_short


def _announcing(row: int, sentences: Sequence[_Sentence]) -> Iterator[int]:
    """The rows of the sentences, in the block before the one that begins at a row, which announce that."""
    block, before = sentences[row].block, sentences[row - 1].block
    if _announces(sentences[row - 1], block):
        yield row - 1
        is_bare = len(sentences[row - 1].text.split()) <= _BARE
        if is_bare and row > 1 and sentences[row - 2].block == before:
            yield row - 2
    if before.kind in _PROSE and block.kind in _BESIDE_ITEMS:
        for lead in range(row - 2, -1, -1):
            if sentences[lead].block != before:
                return
            if _POINTS_BELOW.search(sentences[lead].text):
                yield lead


def _announces(sentence: _Sentence, following: Block) -> bool:
    """Whether a sentence announces the block after it.

    It does if it stands above a table, if it ends in a colon or a dash, if it says "the following" or the
    like, or if it ends without a mark above code, or above a list that it is not part of, or asks there.
    """
    kind, text = following.kind, sentence.text
    if sentence.block.kind not in _PROSE or kind not in _ANNOUNCED:
        return False
    if kind == "table" or ends_in_colon(text) or text.endswith(("—", "–")) or _POINTS_BELOW.search(text):
        return True
    is_above = sentence.block.kind != "item" or following.level > sentence.block.level
    is_open = not ends_sentence(text) or (kind == "item" and text.endswith(_QUESTION_MARKS))
    return (kind == "code" or (kind == "item" and is_above)) and is_open


def _announced(row: int, sentences: Sequence[_Sentence]) -> Iterator[int]:
    """The rows of the list, with code in it, code or table that begins at a row: LONGEST_ANNOUNCED tokens."""
    left = LONGEST_ANNOUNCED
    for after in takewhile(lambda after: _goes_on(row, after, sentences), range(row, len(sentences))):
        left -= sentences[after].n_tokens
        if left < 0:
            return
        yield after


def _goes_on(row: int, after: int, sentences: Sequence[_Sentence]) -> bool:
    """Whether a later row still is in the list, with code in it, code or table that begins at a row."""
    if after == len(sentences):
        return False
    start, block = sentences[row].block, sentences[after].block
    is_in_item = block.kind in _BESIDE_ITEMS or (block.kind == "item" and block.level >= start.level)
    return block == start or (start.kind == "item" and is_in_item)


def language_of(text: str) -> str:
    """Return the language of a text, of those in leaning.toml, by common words in its beginning, or "en"."""
    words = text[:4_000].lower().split()
    return max(_COMMON, key=lambda language: sum(word in _COMMON[language] for word in words))


def leans(text: str, language: str = "en") -> bool:
    """Check whether a sentence begins with a word for what was said before: "it", "this", "however"."""
    return _LEANS[language].match(text) is not None and TURN.match(text) is None


def takes_back(text: str, language: str = "en") -> bool:
    """Check whether a sentence takes back some of what was said before: "However, members pay nothing."."""
    return _TAKES_BACK[language].match(text) is not None
