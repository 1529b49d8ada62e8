"""Documentation in reStructuredText, Markdown, HTML, AsciiDoc, plain text and a manual page, with questions.

The documents are read from where packages have put them: CMake's manual (BSD 3-Clause), Node.js (MIT), Ninja
(Apache-2.0), bzip2 (BSD-like), git-subtree (GPL 2), xz (public domain), all from Debian, and the topics of
Python's help (PSF). The questions are ours and were written before any result was seen. An answer is a list
of passages that must all be there; their white space, tags and bars of tables do not count.
"""

import html
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple

QUESTIONS = Path(__file__).with_name("documentation.jsonl")

_SHARE = Path("/usr/share")
_FILES = {
    **{
        f"cmake/{name}.rst": _SHARE / f"cmake-3.25/Help/command/{name}.rst"
        for name in ("string", "list", "math", "message", "execute_process", "foreach")
    },
    "cmake/cmake-presets.7.rst": _SHARE / "cmake-3.25/Help/manual/cmake-presets.7.rst",
    **{
        f"node/{name}.md": _SHARE / f"doc/nodejs/api/{name}.md"
        for name in ("path", "os", "timers", "tty", "querystring", "string_decoder")
    },
    "ninja/manual.html": _SHARE / "doc/ninja-build/manual.html",
    "bzip2/manual.html": _SHARE / "doc/bzip2/manual.html",
    "git/git-subtree.txt": _SHARE / "doc/git/contrib/subtree/git-subtree.txt",
}
_TOPICS = (
    "operator-summary", "formatstrings", "try", "with", "typesseq", "typesseq-mutable", "while", "for",
    "exprlists", "lists", "slicings", "string-methods", "comparisons", "execmodel",
)  # fmt: skip

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_UNSEEN = re.compile(r"[\s|]+")


class Asked(NamedTuple):
    """A question. document: name of the file that answers it. kind: what the answer stands in. answer: the
    passages that are needed."""

    document: str
    kind: str
    question: str
    answer: tuple[str, ...]


def write_documents(folder: Path) -> list[str]:
    """Write the documents that are installed into a folder; return their names."""
    texts = {name: path.read_text("utf-8") for name, path in _FILES.items() if path.is_file()}
    texts |= {f"python/{name}.txt": topics[name] for name in _TOPICS if name in topics}
    manual = subprocess.run(
        ["man", "-P", "cat", "xz"],
        env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    if manual.returncode == 0:
        texts["man/xz.txt"] = manual.stdout
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return list(texts)


def read_questions() -> Iterator[Asked]:
    """Yield the questions."""
    for line in QUESTIONS.read_text("utf-8").splitlines():
        item = json.loads(line)
        yield Asked(item["document"], item["kind"], item["question"], tuple(item["answer"]))


def plain(text: str) -> str:
    """Return a text without tags, white space and bars, to look for passages in it."""
    return _UNSEEN.sub("", html.unescape(_TAG.sub(" ", text)))
