"""What a model is told to answer, and what its reply says.

Styles: "open" (sentences with citations), "short" (a name, a number or a phrase) and "choice" (one of
the given options).
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from precise_rag._data import packaged_toml
from precise_rag.prompts.prompt import CONTROL_TOKEN, INSTRUCTIONS, Shown, repeats_instructions

AnswerStyle = Literal["open", "short", "choice"]
ANSWER_VERSION = "answer/5"
NOT_IN_PASSAGES = "The passages do not contain the answer."
"""The sentence with which the model replies if the passages do not contain the answer."""
REFUSED = "the model finds no answer in the passages"
ANSWER_TASK = INSTRUCTIONS["answer"]["task"].replace("{refusal}", NOT_IN_PASSAGES)
FORMS: Mapping[AnswerStyle, str] = INSTRUCTIONS["answer"]["forms"]
"""What form an answer has, by style."""


def cited_numbers(text: str, passages: Sequence[str]) -> list[int]:
    """Return the numbers that an answer cites, such as [2] or [1-3], each once, in their order in it.

    passages: the texts that were shown. A number in brackets that stands behind the same words in one of them
        is quoted from it, and cites nothing. Of a range, one number beyond them is returned at most.
    """
    numbers: dict[int, None] = {}
    for cited in _CITATION.finditer(text):
        words = text[max(0, cited.start() - 100) : cited.end()].split()[-5:]
        if len(words) == 1 or not any(" ".join(words) in passage for passage in passages):
            for first, last in _NUMBERS.findall(cited[0]):
                end = min(int(last), len(passages) + 1) if last else int(first)
                numbers |= dict.fromkeys(range(int(first), end + 1))
    return list(numbers)


def numbered(draft: str, mark: str, passages: Sequence[Shown] = ()) -> str:
    """Return a draft that cites passages by number, also where a line names one by the mark of its prompt.

    passages: what was shown. A line that quotes the text of one behind its mark cites it.
    """
    texts = {str(number): " ".join(one.text.split()) for number, one in enumerate(passages, start=1)}

    def cited(line: re.Match[str]) -> str:
        is_quoted = line[1].lower() == mark and " ".join(line[3].split()) in texts.get(line[2], "")
        return f"{line[3].rstrip()} [{line[2]}]" if is_quoted else line[0]

    draft = _BEHIND_MARK.sub(cited, draft)
    return _WITH_NUMBER.sub(lambda m: f"[{m[2]}]" if m[1].lower() == mark else m[0], draft)


def own_part(draft: str, mark: str) -> tuple[str, bool]:
    """Return a draft without end tokens, up to where it repeats itself or its prompt; whether it does."""
    draft = _END_TOKENS.sub("", draft)
    marked = (line.start() for line in _LINE.finditer(draft) if line[1].lower() == mark)
    part = draft[: next(marked, None)]
    if (again := _AGAIN.search(part)) and again[1].startswith(part[again.end() :].strip()):
        part = part[: again.end(1)]
    return (part.rstrip(), True) if part != draft else (draft, False)


def problem_of(draft: str, mark: str, question: str, context: str = "") -> str:
    """Return what keeps a draft from being an answer, "" if nothing; one word of the context is an answer."""
    draft = _TOKENS.sub("", draft)
    uncited = _CITATION.sub("", draft)
    said = [one.strip() for one in _SENTENCE.findall(uncited)] or [""]
    rest = (one for n, one in enumerate(said) if not n or not _AFTER_REFUSAL.match(one))
    may_refuse = uncited == draft or _OF_ANSWER.search(draft)
    if may_refuse and said[0] not in re.findall(r"\w+", context) and all(map(_REFUSAL.fullmatch, rest)):
        return REFUSED
    spoken, asked = (re.findall(r"\w+", text.lower()) for text in (draft, question))
    marks = [word for word in spoken if word.rstrip(string.digits) == mark]
    if repeats_instructions(draft) or marks or (asked and spoken in (asked, ["question", *asked])):
        return "the reply repeats the prompt"
    shown = "".join(filter(str.isprintable, _CITATION.sub(" ", " ".join(draft.split()))))
    words = re.findall(r"<[^<>\s]*>|\w{1,40}", shown) or "".join(shown.split())
    times = max(Counter(one for one in said if one.count(" ") > 2).values(), default=0)
    # The words of a text grow at least with the root of its length (Heaps' law), unless it repeats itself.
    if not words or len(words) > max(2, len(set(words)) ** 2) or times >= max(4, len(said) / 2):
        return "the reply is empty or repeats itself"
    return ""


def chosen_option(text: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that a reply to style "choice" names; None if not exactly one.

    text: the reply: with a letter such as "B", "(b)" or "Answer: **B**.", or with the words of one option.
    options: the options of the prompt, in its order.
    """
    letters = string.ascii_uppercase[: len(options)]
    if first := _CHOICE.match(text):
        named = {first[first.lastindex or 0].upper()}
    else:
        worded = set()
        for option in sorted(options, key=len, reverse=True):
            whole = rf"(?<![a-z0-9]){re.escape(option.strip())}(?![a-z0-9])"
            text, times = re.subn(whole, " ", text, flags=re.I)
            worded |= {letters[options.index(option)]} if times else set()
        named = set(_LETTER.findall(text)) or worded
    index = letters.find(named.pop()) if len(named) == 1 else -1
    return index if index >= 0 else None


*_WORDS, _ENGLISH, _SAID, _PARTS = packaged_toml("prompts/refusals.toml").values()


def _made(pattern: str) -> str:
    """Return a pattern of refusals.toml with its parts."""
    return re.sub(r"<([a-z]+)>", lambda name: _made(_PARTS[name[1]]), pattern)


_NOT, _QUESTION = _made("<not>"), _made("<question>")
_DENIALS = (*map(_made, _SAID), _ENGLISH, "".join(f"(?=[^,;:]*?(?:{words}))" for words in _WORDS))
_REFUSAL = re.compile(
    r"(?:(?:(?:I.?m )?sorry|unfortunately|note|answer|but|therefore|so|as an? [^.,;]{1,50}(?=,))[\W\d]++)*+"
    rf"(?:{'|'.join(_DENIALS)})"
    rf"(?:(?! but\b| however\b)[^,;]|, (?:(?:or |and )?{_QUESTION}|so I (?:do|ca|can|could|am){_NOT}))*",
    re.I,
)
"""A sentence that says that the passages do not contain the answer, or do not say something else."""
_OF_ANSWER = re.compile(
    r"(?i)\b(?:answer|information|question|mention|sa[yi]|stat|specif|indicat|address|discuss|descri|explain|tell)"
)
"""What a refusal speaks of if it cites: "The document has no personal data [1]." is an answer."""
_TOKENS = re.compile(rf"(?:{CONTROL_TOKEN.pattern})(?:(?:assistant|model|user)\b)?")
_END_TOKENS = re.compile(rf"(?<![>\s])(?:(?<![\w:,])\s*+|[ \t]*+\n\s*+)?+(?:{_TOKENS.pattern}\s*+){{1,9}}+\Z")
"""Tokens behind a text that are no word of its last sentence, as in "A turn ends with <|eot_id|>"."""
_LINE = re.compile(r"\n([a-z]+)\d*\b", re.I)
_AGAIN = re.compile(r"(?s)(?:\A|(?<=[\n.!?。！？]) ?)((?=\W{0,9}[^\W\d])\S.{7,400}?)(?:\s*\1){2,}")
"""A sentence or several that come three times on end; "end" in code is shorter."""
_SENTENCE = re.compile(r"\w[^.!?。！？\n]*+")
_AFTER_REFUSAL = re.compile(r"(?:they|the passages|please)\b", re.I)
_BEHIND_MARK = re.compile(r"^([a-z]+)(\d+)(?:: ?| )(.+)", re.I | re.M)
_WITH_NUMBER = re.compile(r"[\[(]?(?<!^)\b([a-z]+)(\d+)\b(?!:)[\])]?", re.I | re.M)
_NUMBERS = re.compile(r"(\d{1,9})(?:[-–](\d{1,9}))?(?:,? pp?\. ?\d+)?")
_ONE = rf"\^?{_NUMBERS.pattern}"
_CITATION = re.compile(
    rf"[\[【](?:passages? |sources? )?{_ONE}(?:[\s,;&]+(?:passages? |sources? |and )*{_ONE})*[\]】]", re.I
)
_CHOICE = re.compile(
    r"[\W_]*+(?:(?i:(?:the\s+)?(?:correct\s+)?(?:answer|option)\W*+(?:is\W*+)?)([A-Z])\b"
    r"|([A-Za-z])(?:[\W_]*+\Z|[\W_]*?[).:\]\n]))"
)
"""A letter with which a reply begins."""
_LETTER = re.compile(r"(?<![\w'’])(?:[B-HJ-Z]|[AI](?! (?!(?:and|or)\b)[a-z]))(?![\w'’])")
"""A letter that stands alone; "A" and "I" are words before small letters."""
