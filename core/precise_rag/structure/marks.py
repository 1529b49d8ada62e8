"""The marks by which lines of text show what they are. Every expression takes linear time."""

import html
import re
import sys
from collections.abc import Sequence
from functools import cache
from unicodedata import category

from precise_rag._data import packaged_toml

_COUNT = "[一二三四五六七八九十ァ-ヶ]{1,3}"
_WORDS, _NUMERAL, _CASELESS, _RING, _PART, _FIGURE = packaged_toml("structure/title_words.toml").values()
"""Words for numbers, signs for them, letters of scripts without capitals, words of titles and captions."""
ITEM = re.compile(
    r"[ \t]{0,40}(?:[-*+•‣▪◦·–○●■□★☆◆◇◎※❍ㅇ←-⇿►▶▷☐-☒✓-✘➔-➾][ \t\u3000]|・|[●○■□★◆◎※](?=[\u3040-\u9fff])"
    rf"|[⒈-⒛{_RING}]|（\d{{1,3}}）|\d{{1,3}}[．、]|[１-９][０-９]?[ \u3000]|[^\W\d_]．|(?i:{_WORDS}):[ \t]"
    rf"|[（(]?\d{{1,3}}[.)）](?=[\u3040-\u9fff])|[（(]{_COUNT}[）)]|{_COUNT}\u3000|第?[{_NUMERAL}]{{1,3}}[、，]"
    r"|(?:(?:\d{1,3}|[^\W\d_])[।۔]|\[\d{1,3}\]|(?:\d{1,2}|[a-z])/)[ \t]"
    r"|(?:\d{1,2}(?:\.?[°º]|[ \t]?-(?![ \t]+[\da-zа-я]))|(?:[\u05d0-\u06ff]ـ?|الف)[ \t]?-)[ \t]"
    r"|(?![A-Z]\.[ \t]\d[\d.,×x ]{0,20}[mck]?[mg]\b)"
    r"\(?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[^\W\d_]ـ?|الف|[ivxIVX]{1,5}|#)[.)][ \t\u3000])"
)
"""A line that begins a list item."""
NUMBERED = re.compile(
    rf"(?:(?i:{_PART})\b[ .:]{{0,3}}(?:[\dIVXLCivxlc]{{1,6}}|[A-Z])\b"
    r"|(?!\d{3} )\d{1,3}(?:\.\d{1,3}){0,5}[.)]?(?=[ \t])|(?:[IVXLC]{1,6}\.|[Ⅰ-ⅿ]{1,4}[.．、]?)(?=[ \t])"
    r"|[第제][\d一二三四五六七八九十百]{1,5}[章节節부장])"
)
"""The number of a heading, not of an answer: "404 Not Found"."""
COUNTED = re.compile(
    rf"(?:(?P<word>[第제]|[^\W\d_][^\s\d.,:;!?()=|]{{1,20}}\.?[ \t]{{1,2}}|§{{1,2}}[ \t]?"
    rf"|[{_CASELESS}]{{1,4}}(?=[\d{_NUMERAL}]{{1,3}}[：:\u3000]))[(（]?"
    rf"(?P<number>\d{{1,4}}(?:\.\d{{1,3}}){{0,4}}|[IVXLC]{{1,7}}(?![A-Z])|[{_NUMERAL}]{{1,6}}"
    rf"|(?:(?<!\.[ \t])(?i:{_WORDS})|[{_CASELESS}])(?=[ \t]?[:.–—-]|\Z))"
    r"[)）]?(?P<kind>[章节節編编条條款項项部장절조]?)(?=[.:(–—-]|er\b|\s*(?:[^\sa-zа-я]|\Z))(?!\.\d)"
    rf"|(?P<open>[(（［]?)(?P<counted>[{_NUMERAL}]{{1,3}}|\d{{1,3}}|[Ⅰ-ⅿ]{{1,4}}|[IVXLC]{{1,6}}|[{_RING}]"
    r"|[가나다라마바사아자차카타파하ァ-ヶ]|[\u05d0-\u10ff]ـ?|الف)"
    rf"(?P<mark>[)）］、．।۔.-]|(?<=[Ⅰ-ⅿ{_RING}])|(?<=[０-９])[ \t]|\u3000)(?=[ \t\u3000]*[{_CASELESS}])"
    rf"|(?P<first>(?i:{_WORDS}))(?P<of>[ \t]\S{{1,20}}?)?[ \t]?:(?=[ \t]))"
)
"""A number before a title, with a word in any language, or before letters without capitals: "§ 3 Fristen"."""


def counted_word(match: re.Match[str]) -> str:
    """Return what tells a match of COUNTED from other series: "artículo", "第条", the signs of "三、"."""
    if number := match["counted"]:
        return f"{match['open']}{'一' if number[0] in _NUMERAL[:11] else category(number[0])}{match['mark']}"
    return f"{match['word'] or match['of'] or ''}{match['kind'] or ''}".strip().casefold()


_SMALL = r"(?:of|and|the|to|for|in|or|on|by|with|a|an|&)"
NUMBERED_TITLE = re.compile(
    r"(?:(?i:section|article)[ \t])?"
    r"(?:\(\w{1,5}\)|\d{1,3}(?:\.\d{1,3}){0,4}[.)]?|[A-Za-z][.)]|[IVXivx]{1,5}[.)])[ \t]+"
    rf"[A-Z][\w'’-]*(?:[ ,/;]{{1,3}}(?:[A-Z][\w'’-]*|{_SMALL})){{0,9}}\.\s*"
)
"""A numbered title with a full stop, alone or before its text, as contracts have."""
ADORNMENT = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}[ \t]*\Z")
"""A line of one punctuation mark, under or over a title."""
BANNER = re.compile(r"(?:={4,200}|_{1,200}|-{6,200})(?<=([=_-]))[ \t]([^\W_][^\n]{0,200}?)[ \t]\1{1,200}\Z")
"""A title with its adornment on both sides, as in the logs of tests."""
MARKED_TITLE = re.compile(
    r"(={1,6}(?=[ \t])|=head[1-4](?=[ \t])|\\(?:sub){0,2}section\*?(?=\{)|[■◆▼▶]|(?=【|《[^》\n]{1,60}》\Z))"
    r"[ \t\u3000{【《]{0,40}(\w[^\n】]{0,200}?)[ \t=}】》]*+(?:\\label\{[^{}\n]{0,80}\})?(?<!。)\Z"
)
"""A title in AsciiDoc and wikis, `== Oil`, in Perl's POD, in LaTeX, or in Japanese: `■ 料金`, `【料金】`."""
MANUAL_HEAD = re.compile(r"(\S{1,60}\(\d\w{0,3}\))[ \t].{0,200}[ \t]\1\Z")
"""The first line of a page of a manual: "LS(1)  User Commands  LS(1)"."""
BORDER = re.compile(r"=+(?:[ \t]+=+)+[ \t]*\Z")
"""A border of a simple table in reStructuredText."""
HEAD_RULE = re.compile(r"[ \t]*+\|?[ \t]*+:?-++:?[ \t]*+(?:[|+][ \t]*+:?-*+:?[ \t]*+)++\Z")
"""The line below the head of a table with bars, as in Markdown, and also with a plus between the columns."""
DIRECTIVE = re.compile(r"\.\. +(?:[\w:.+-]+)::")
_OF_LABEL = r"[^\n:.!?;,\"“”(){}<>|=\[\]：。！？；，、「」（）]"
_DATE = (
    r"(?:\d{4}-\d\d-\d\d|\d{1,2}[./-](?:\d{1,2}|[A-Z][a-z]{2})[./-]\d{2,4}|[A-Z][a-z]{2} \d\d?)(?:T|,?[ \t]+)"
)
_CLOCK = rf"[\[(]?(?:{_DATE})?\d{{1,2}}:\d\d(?::\d\d)?(?:[.,]\d{{3}})?(?:[ \u202f]?[AaPp][Mm])?[\])]?"
_TIME = rf"{_CLOCK}(?:[ \t]+-)?[ \t]+"
_NAME = rf"[^\W\d_]{_OF_LABEL}{{0,39}}"
TURN = re.compile(
    r"(?m)^(?P<indent>[ \t]*)(?:<[A-Za-z][^<>\n]{0,200}>[ \t]*){0,3}(?:\*\*|__)?"
    rf"(?:{_TIME}<[ @+%&~]?(?P<nick>[^\s<>]{{1,40}})>[ \t]"
    r"|(?P<label>(?![\w.]{1,60}(?:Error|Exception|Warning):)"
    rf"(?:{_TIME}(?:\*\*|__)?\w|[^\W\d_a-z]){_OF_LABEL}{{0,39}}(?:[.]{_OF_LABEL}{{0,20}}){{0,2}}"
    r"(?:[(（][^\n()]{1,30}[)）])?)(?::(?:\*\*|__|</[A-Za-z]{1,8}>)?[ \t\n]|：(?:\*\*|__)?)"
    rf"|(?P<head>{_TIME}{_NAME}|{_NAME}(?:,[^\n:]{{0,20}})?[ \t,|·(\[—–-]{{1,4}}{_CLOCK})"
    rf"[ \t]*(?=\n(?!{_CLOCK}|[^\n]{{0,60}}{_CLOCK}[ \t]*$)[^\n]))"
)
"""A speaker's label at the start of a line, also in bold or after tags, or a line of a name and a time above
what is said. After a time the label may begin with a small letter. What an error says is none."""
_FOLDED = r":[^\n]*\n(?:[ \t]+[^\s:][^\n]*\n)*+"
_POSTMARK = r"From [^\s:]+ {1,3}\w{3} \w{3} [^\n]+\n"
_SMALL_PRINT = rf"(?:[A-Za-z]\w{{0,20}}-[\w-]{{1,40}}|Received|References|Sender|B?[Cc]{{2}}|Status){_FOLDED}"
_FROM = rf"(?:From|Von|De|Da|Van|Från|Fra|Od|От|发件人)[ \t]?(?=:[ \t]\S){_FOLDED}"
_BEFORE = rf"(?:{_SMALL_PRINT}|(?:Date|To|Subject){_FOLDED})"
_AFTER = rf"(?:{_SMALL_PRINT}|[^\W\d_][\w -]{{0,20}}[ \t]?{_FOLDED})"
MAIL_HEAD = re.compile(
    rf"(?m)^(?:[-_]{{5,}}[^\n]{{0,60}}\n\s*)?(?:{_POSTMARK})?"
    rf"(?:{_BEFORE}{{2,40}}+{_FROM}{_AFTER}*+|{_BEFORE}{_FROM}{_AFTER}++|{_FROM}{_AFTER}{{2,}}+)"
    r"|^(?:commit [0-9a-f]{7,64}\b[^\n]*\n(?:[A-Z]\w{2,15}:[^\n]*\n)+"
    r"|[\w.+-]{1,60} \([^\s()]{1,60}\)[^;\n]{1,80}; urgency=[^\n]*\n)"
)
"""Who wrote a mail, when and to whom, also below a line that parts it from the answer above it: three or more
fields in any order. And the head of an entry in the log of git, or in a change log of Debian."""
SMALL_PRINT = re.compile(rf"(?m)^(?:{_POSTMARK}|{_SMALL_PRINT})")
"""The lines of the head of a mail that say how it came."""
WHEN = re.compile(_CLOCK)
"""A time, also with its date."""
_BESIDE_NAME = re.compile(r",|[ \t][—–|·-]|\t|  |[\[(（]")
TIME = re.compile(
    r"[\[(]?[\w./, -]{0,24}?(?<!\d)\d\d:\d\d:\d\d\b|(?:[A-Z]:)?[^\s:()<>\"']{1,200}\.[A-Za-z]\w{0,7}"
    r"(?:(?::\d{1,6}){1,2}(?::| -)|\(\d{1,6}(?:,\d{1,6})?\) ?:)[ \t]+\S+[ \t]+\S"
)
"""The beginning of a line of a log: its time, or the place in a file that a compiler's message is on."""
CUE = re.compile(r"(?:\d{1,6}\s{1,4})?(?:\d{1,3}:){1,2}\d\d[,.]\d{3} {1,9}-->")
"""The beginning of a caption: its number and its time, which end no sentence."""
CAPTION = re.compile(rf"(?:{_FIGURE})[ \t]*\d{{1,3}}(?:[.-]\d{{1,3}})?\b")
"""The beginning of the caption of a table or figure."""
CODE_LINE = re.compile(
    r"(?:>>>|\$|[A-Za-z]:\\>|#!)[ \t]?\S"
    r"|(?:def|class|if|elif|for|while|with|except|case|match)\b[^.\n]{1,200}:(?:[ \t]*#.*)?\Z"
    r"|(?:try|else|finally):\Z"
    r"|(?:import|from|return|raise|del|const|let|var|function|public|static)\b[^.!?\n]{1,200}[\w\])};]\Z"
    r"|@?[\w.\[\]\"'<>-]{1,80}[ \t]{0,40}(?:::?|[-+*/|&]{1,2})?=[ \t]{0,4}[^\s=][^\n]{0,300}\Z"
    r"|\S[^\n]{0,300}[;{}]\Z|[\w.]{1,80}\([^\n]{0,300}\)\Z|<[a-z/!][^\n]{0,300}>\Z"
)
"""A line that can hardly be anything but code."""
FORMULA = re.compile(
    r"[ \t]{0,40}(?:\$\$|\\\[|\\begin\{(?:equation|align|gather|multline|math|displaymath)\*?\})"
)
"""The beginning of a formula that is set apart, as LaTeX and Markdown write it."""
COLUMNS = re.compile(r"[^\n]{0,500}?\S(?: {3,}|[ ]*\t[ \t]*|\u3000{2,} *)\S")
"""A line with a wide gap between its words, as in a table that is set with spaces."""
FEWEST_ROWS = 3
"""Lines with wide gaps that are a table."""
WIDE = re.compile(
    r"[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6"
    r"\U0001f300-\U0001faff\U00020000-\U0003fffd]"
)
"""A sign of full width, such as those of Chinese, Japanese and Korean: it takes two columns."""
_FILL = "\0"
_PLAIN = re.compile(r"[\0-\u02ff\u0370-\u0482\u048a-\u0590\u2010-\u2027\u2030-\u205f]*+")


@cache
def _columns(sign: str) -> str:
    return "" if category(sign) in ("Mn", "Me", "Cf") else sign + _FILL * bool(WIDE.match(sign))


def in_columns(line: str) -> str:
    """Return a line with _FILL after each sign of full width, without signs of none: places are columns."""
    return line if _PLAIN.fullmatch(line) else "".join(map(_columns, line))


def indent_of(line: str) -> int:
    """Return the columns of white space before the words of a line, with a tab stop at each eighth."""
    return len(line[: len(line) - len(line.lstrip(" \t\xa0"))].expandtabs(8))


_GAPS = re.compile(rf"(?m)^{ITEM.pattern}\u3000*|(?<=\S)\u3000{{2,}}(?=[ ]*\S)")


def with_tabs(text: str) -> str:
    """Return a text, as long as before, with tabs that end gaps of full-width spaces between cells."""
    return _GAPS.sub(lambda gap: gap[0] if gap[0].strip() else " " * (len(gap[0]) - 1) + "\t", text)


_SPACE = re.compile(r"\s*+")


def after_space(text: str, place: int, end: int = sys.maxsize) -> int:
    """Return where the white space ends that begins at a place; the place itself without any."""
    return _SPACE.match(text, place, end).end()  # type: ignore[union-attr]  # it matches nothing, too


_LABEL = re.compile(r"\S{1,30}(?: \S{1,20}){0,2}(?:[ \t]{2,}|\t)(?=\S)")
_FULL_LABEL = re.compile(r"(?<=[ \t])(?![A-Z][a-z])[^\W\d][\w-]{3,29} (?=\S[^\n]{40})")
"""An indented word, not that of a sentence, that fills the columns before its text."""


def label_end(line: str, below: str) -> int:
    """Return where the label ends that a line begins with, as in manual pages; 0 without one.

    Its text begins after a gap, in the column where the line below begins.
    """
    start = len(line) - len(line.lstrip(" \t"))
    labels = filter(None, (_LABEL.match(line, start), _FULL_LABEL.match(line, start)))
    places = {len(in_columns(line[: label.end()]).expandtabs(8)): label.end() for label in labels}
    return places.get(indent_of(below), 0)


def speaker(match: re.Match[str]) -> str:
    """Return the name in a match of TURN."""
    name = WHEN.sub("", match["nick"] or match["label"] or match["head"])
    return _BESIDE_NAME.split(name.strip(" \t*_-"), maxsplit=1)[0].strip(" *_")


FIELD = re.compile(r"(?:[-*+] )?\*{0,2}[^\W\d][^:=\n]{0,40}[:=]\*{0,2}\s")
"""A name with its value: "Owner: Ada"."""
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>|<!--[^<>]{0,200}-->")
_MARKUP = re.compile(r"</|/>|=[\"']|<!--|<[^\s<>@]{1,60}@|<(?:h[1-6]|d[dt]|p|li|t[dhr]|br)\b", re.IGNORECASE)
"""What tags have, and addresses in mails, but not the `<placeholders>` of a command."""
LINK_TARGET = r"(?:\([^()\n]{0,600}\)|\[[^\[\]\n]{0,100}\])"
_LINK = re.compile(rf"(?:\[(?=!))?!?\[([^\[\]\n]{{0,300}})\]{LINK_TARGET}?(?:\]{LINK_TARGET})?")
_ROLE = re.compile(r":[a-zA-Z:+-]{1,30}:`([^`\n]{0,200})`")
_ANCHOR = re.compile(r"(?<![ \t])[ \t]*+\{#[^{}\n]{0,200}\}[ \t]*+\Z")
_EMPHASIS = re.compile(r"`|(?<![\w\\])[*_]{1,3}(?=\S)|(?<![\s\\])[*_]{1,3}(?!\w)|\\(?=[^\w\s]|_)")
_BULLET = re.compile(r"\A(?:(?:[-*+] +)+(?=#)|\*+ +(?=\w))")
_BEFORE_HEADING = re.compile(r"\A.*(?=<h[1-6]\b)", re.IGNORECASE)
_NO_CHARACTER = re.compile(r"&(?=#\d{9})")


def unescaped(text: str) -> str:
    """Return a text with the characters that HTML writes as references; a number too large for one stays."""
    return html.unescape(_NO_CHARACTER.sub("&amp;", text))


def without_tags(text: str) -> str:
    """Return a sentence of HTML without its tags."""
    return " ".join(unescaped(_TAG.sub(" ", text)).split())


def without_marks(text: str) -> str:
    """Return the words of a heading: without its `#`, adornment, tags, links and emphasis."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("-----") and not ADORNMENT.match(line)]
    words = _BEFORE_HEADING.sub("", " ".join(lines))
    words = _BULLET.sub("", (_TAG.sub(" ", words) if _MARKUP.search(words) else words).strip(" ¶"))
    words = _ANCHOR.sub("", words.strip("# ") if words.startswith("#") else words)
    words = _ROLE.sub(r"\1", MARKED_TITLE.sub(r"\2", BANNER.sub(r"\2", MANUAL_HEAD.sub(r"\1", words))))
    beside_images = _LINK.sub(lambda link: "" if "![" in link[0][:3] else link[1], words)
    words = beside_images if any(map(str.isalnum, beside_images)) else _LINK.sub(r"\1", words)
    return " ".join(_EMPHASIS.sub("", unescaped(words)).split())


_LEAD_IN = re.compile(r"[:：][*_`'\"”»)\]]{0,3}(?:[ \t]>)?\s*\Z")
"""Also before the sign for an example in the help of Vim."""
_CLOSING_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>\Z")


def ends_in_colon(text: str) -> bool:
    """Check whether the last line of a text ends in a colon, apart from emphasis and tags."""
    tail = text[-400:].rstrip()
    while tail.endswith(">") and (tag := _CLOSING_TAG.search(tail)) is not None:
        tail = tail[: tag.start()].rstrip()
    return _LEAD_IN.search(tail[-8:]) is not None


STOPS = (".", "!", "?", "…", "。", "！", "？", "｡", "؟", "।", "॥", "۔", "។", "።", "։")
"""Signs at the end of a sentence."""
_CLOSING = " \t\r\n\"'”’»)]*_`"


def ends_sentence(text: str) -> bool:
    """Check whether a text ends in a full stop or the like, apart from quotes, brackets and emphasis."""
    return text.rstrip(_CLOSING).endswith(STOPS)


BOLD_LINE = re.compile(r"[ \t]{0,40}(\*\*|__)[^*_\n]{1,100}\1[ \t]*\Z")
_NARROWEST = 40  # columns of a line of an item that is wrapped, at least


def leads_in(before: str, lines: Sequence[str]) -> bool:
    """Check whether lines right below an item begin with the lead-in of other items.

    before: the line above them. The lead-in ends in a colon or is bold; it may be wrapped, but
    not before a capital. Below the full first line of an item it begins with a capital or a mark. A line with
    a number or date, but no stop, that would have fitted above is one, too: "May 2015  Promoted".
    """
    lead = lines[: next((row for row, line in enumerate(lines[:4]) if ITEM.match(f"{line} ")), 0)]
    if not lead or any(line.lstrip()[0].isupper() for line in lead[1:]):
        return False
    word = lead[0].split()[0]
    is_early = len(before.rstrip()) + len(word) < max(_NARROWEST, len(lead[0].rstrip()))
    is_first = ITEM.match(before) is not None or indent_of(before) > indent_of(lead[0])
    is_new = is_first and (len(lead) == 1 or "(" in lead[0]) and not word[0].islower()
    if ends_in_colon(lead[-1]) or BOLD_LINE.match(lead[-1]):
        return is_early or ends_sentence(before) or is_new
    is_dated = any(map(str.isdigit, "".join(lead[0].split()[:2]))) and lead[0].rstrip()[-1] not in ",;"
    is_dated = is_dated and not (lines[1].strip()[0].isalnum() or ends_sentence(lead[0]))  # no "1. Title"
    return is_early and is_new and is_dated and len(lead) == 1
