"""Rules of .gitignore files: as git reads them, in linear time."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from precise_rag import read_documents
from precise_rag.documents.ignoring import IgnoreRules
from precise_rag.errors import InputError

RULES = [
    "build/",
    "*.log\n!keep.log",
    "/top.md",
    "docs/*.md",
    "**/deep/*.md",
    "a/**/z.md",
    "a/**",
    "**",
    "**/b",
    "**/b/",
    "a**b.md",
    "?.md",
    "[ab].md",
    "[!ab].md",
    "[^a-b].md",
    "[]a].md",
    "[[:upper:]].md",
    "[[:digit:][:alpha:]].md",
    "[b-a].md",
    "[\\]a].md",
    "[a.md",
    "\\#a.md",
    "\\!a.md",
    "#a.md",
    "a.md  ",
    "a.md\\ ",
    "a.md\r",
    "*\n!/a\n!*.md",
    "\\a.md",
    "a.md\\",
    "*a*a*b.md",
    "x*.md\n!x?.md",
]
PATHS = ["a.md", "b.md", "A.md", "].md", "7.md", "a.log", "keep.log", "top.md", "a/top.md", "docs/a.md"]
PATHS += ["docs/in/a.md", "deep/a.md", "x/deep/a.md", "a/z.md", "a/x/y/z.md", "b/x.md", "a/b/x.md", "ab.md"]
PATHS += ["a-b.md", "#a.md", "!a.md", "a.md ", "build/x.md", "x/build/x.md", "aaaab.md", "xy.md", "[a.md"]


def ignored(rules: IgnoreRules, path: str) -> bool:
    """Whether a path or a folder above it is ignored."""
    parts = path.split("/")
    above = any(rules.check(parts[:end], True) for end in range(1, len(parts)))
    return above or bool(rules.check(parts, False))


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
def test_the_rules_mean_what_they_mean_to_git(tmp_path: Path) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=environment)
    command = ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "-z", "--stdin"]
    for rules in RULES:
        (tmp_path / ".gitignore").write_text(rules, newline="")
        paths = "\0".join(PATHS).encode()
        done = subprocess.run(command, input=paths, capture_output=True, check=False, env=environment)
        expected = done.stdout.decode().split("\0")[:-1]
        assert [path for path in PATHS if ignored(IgnoreRules(rules), path)] == expected, rules


@pytest.mark.parametrize(
    "rule", ["*a*a*a*a*ab", "*a" * 100 + "b", "a**" * 80 + "b", "*" + "?" * 120 + "x", "**/a/" * 60 + "b/c"]
)
def test_no_rule_hangs(rule: str, tmp_path: Path) -> None:
    """With steps that multiply for each star, these would not end."""
    (tmp_path / ".gitignore").write_text(rule)
    (tmp_path / f"{'a' * 250}.md").write_text("text")
    (tmp_path / "/".join("a" * 200)).mkdir(parents=True)
    (tmp_path / "/".join("a" * 200) / "x.md").write_text("text")
    assert len(list(read_documents(tmp_path))) == 2


def test_rules_that_cannot_be_read_leave_their_folder_unread(tmp_path: Path) -> None:
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("text")
    (tmp_path / "closed" / ".gitignore").write_text("#" * 70_000)
    errors: list[InputError] = []
    found = read_documents(tmp_path, on_error=errors.append)
    assert [document.id for document in found] == ["open/a.md"]
    assert len(errors) == 1
    assert "has more than 65,536 bytes" in str(errors[0])
    (tmp_path / ".git").mkdir()
    errors.clear()
    shutil.move(tmp_path / "closed" / ".gitignore", tmp_path / ".gitignore")
    assert list(read_documents(tmp_path / "open", on_error=errors.append)) == []
    assert len(errors) == 1


def test_a_given_folder_that_is_ignored_has_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/")
    (tmp_path / "build" / "in").mkdir(parents=True)
    (tmp_path / "build" / "in" / "a.md").write_text("text")
    with pytest.raises(InputError, match="nothing to read"):
        list(read_documents(tmp_path / "build" / "in"))


def test_a_pattern_enters_each_folder_once_and_stays_in_its_folder(tmp_path: Path) -> None:
    """Two links to the own folder made as many paths as there are numbers of forty bits."""
    (tmp_path / "docs" / ".hidden").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    for name in ("docs/a.md", "docs/.hidden/b.md", "secret/c.md"):
        (tmp_path / name).write_text("text")
    for name, to in (("one", "."), ("two", "."), ("out", "../secret"), ("c.md", "../secret/c.md")):
        (tmp_path / "docs" / name).symlink_to(to)
    errors: list[InputError] = []
    pattern = tmp_path / "docs" / "**" / "*.md"
    assert [d.id for d in read_documents(pattern, on_error=errors.append)] == ["a.md"]
    assert [str(error).split(":")[0].rsplit("/", 1)[1] for error in errors] == ["c.md", "out"]
    assert {d.id for d in read_documents(pattern, follow_links=True)} == {"a.md", "c.md", "out/c.md"}
    assert [d.id for d in read_documents(tmp_path / "docs" / ".h*" / "[!c].md")] == [".hidden/b.md"]
    with pytest.raises(InputError, match="is no pattern"):
        list(read_documents(tmp_path / "docs" / "[x.md"))
