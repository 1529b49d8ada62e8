"""Manual pages: from their source to the text that `man` shows."""

import gzip
from pathlib import Path

import pytest

from precise_rag import read_documents
from precise_rag.documents import FileReport, place_of
from precise_rag.documents.manual import is_manual, manual_text
from precise_rag.structure import read_structure
from precise_rag.types import Chunk

MAN = r""".\" A comment.
.ie n .ds dash --
.el .ds dash \(em
.de XX
a macro
..
.TH FERRY 1 "May 2024"
.SH NAME
ferry \- book a place \*[dash] or two
.SH OPTIONS
.PP
Options come first.
.TP
\fB\-a\fR, \fB\-\-all\fR
all places,
also those with a \(lqcar\(rq
.TP
.BR \-n " " \fInumber\fP
.if t printed only
how many
.RS
.IP \(bu 2
one or more
.RE
.SS "Night ferry"
The last one leaves at 23:40\&.
.nf
  ferry --night
    | less \e
.fi
"""

MDOC = """.Dd May 1, 2024
.Dt FERRY 8
.Os
.Sh NAME
.Nm ferry
.Nd book a place
.Sh SYNOPSIS
.Nm
.Op Fl an Ar number
.Op Fl f Ar file | Cm all
.Nm
.Fl Fl help
.Sh DESCRIPTION
.Bl -tag -width Ds
.It Fl a
All places; see
.Xr boat 1 ,
.Pq or ask .
.El
"""


def test_man_is_written_as_the_program_shows_it() -> None:
    assert is_manual(MAN)
    assert manual_text(MAN) == (
        "NAME\n       ferry - book a place -- or two\n\n"
        "OPTIONS\n       Options come first.\n\n"
        "       -a, --all\n              all places, also those with a “car”\n\n"
        "       -n number\n              how many\n\n"
        "              •\n                     one or more\n\n"
        "   Night ferry\n       The last one leaves at 23:40.\n\n"
        "         ferry --night\n           | less \\\n",
        "ferry(1)",
    )


def test_mdoc_is_written_as_the_program_shows_it() -> None:
    assert is_manual(MDOC)
    assert manual_text(MDOC) == (
        "NAME\n       ferry — book a place\n\n"
        "SYNOPSIS\n       ferry [-an number] [-f file | all]\n       ferry --help\n\n"
        "DESCRIPTION\n       -a\n              All places; see boat(1), (or ask).\n",
        "ferry(8)",
    )


def test_tables_have_bars() -> None:
    source = ".TH T 5\n.SH A\n.TS\ntab(;);\nl l.\nRoute;Price\n_\nIsland;T{\ntwelve\neuros\nT}\n.TE\nAfter.\n"
    assert (
        "| Route | Price |\n       | --- | --- |\n       | Island | twelve euros |"
        in manual_text(source).text
    )
    assert manual_text(source).text.endswith("       After.\n")


def test_parts_and_options_are_read_as_such() -> None:
    text = manual_text(MAN).text
    structure = read_structure(text)
    assert structure.heading_path(text.index("23:40")) == ("OPTIONS", "Night ferry")


@pytest.mark.parametrize(
    "source",
    [
        "",
        ".",
        "\\",
        "\\f",
        ".TH",
        ".if n \\{\n",
        ".ie t \\{\n.SH X\n",
        ".TS\n",
        ".RE\n.RE\n",
        ".It\n.El\n",
        "\\[u110000]\\*(\\n(",
    ],
)
def test_no_source_breaks_it(source: str) -> None:
    assert isinstance(manual_text(f".TH A 1\n{source}").text, str)
    assert isinstance(manual_text(f".Dd A\n{source}").text, str)


def test_it_takes_time_in_proportion_to_the_page() -> None:
    for part in (".TP\n-a\nb\n", "\\f", "ab\\\n", ".TS\nl.\nT{", ".if n \\{\\\n", ".Op Fl a\n", '"'):
        manual_text(f".TH A 1\n{part * 20_000}")


@pytest.mark.parametrize(
    "source",
    [
        f".ds a {'x' * 5_000}\n" + "\\*a" * 1_000,
        ".ds a " + "\\*b" * 300 + "\n.ds b " + "\\*c" * 300 + f"\n.ds c {'x' * 300}\n" + "\\*a" * 300,
        ".RS\nx\n" * 2_000,
        f".TS\nl.\n{'a' + chr(9) * 20_000}\n" + "a\tb\n" * 2_000 + ".TE\n",
    ],
)
def test_no_page_grows_without_end(source: str) -> None:
    """Strings that hold strings, indents in indents, and a row that all others would be filled to."""
    assert len(manual_text(f".TH A 1\n{source}").text) < 1_500_000


def test_a_last_line_that_would_go_on_is_read() -> None:
    assert "all but the last" in manual_text(".TH A 1\n.SH NAME\nall but\nthe last\\").text


def test_archives_with_the_name_of_a_page_are_skipped_whatever_their_size(tmp_path: Path) -> None:
    (tmp_path / "ferry.8").write_text(MDOC)
    (tmp_path / "old.7z").write_bytes(b"7z\xbc\xaf" * 1_000)
    reports: list[FileReport] = []
    (document,) = read_documents(tmp_path, max_bytes=2_000, on_file=reports.append)
    assert document.id == "ferry.8"
    assert [report.status for report in reports] == ["read", "skipped"]


def test_pages_are_read_packed_too_and_named_by_their_title(tmp_path: Path) -> None:
    (tmp_path / "ferry.1.gz").write_bytes(gzip.compress(MAN.encode()))
    (tmp_path / "ferry.8").write_text(MDOC)
    (tmp_path / "syslog.1").write_text("May 1 09:30 all is well\n")
    (tmp_path / "lib.so.1").write_bytes(b"\x7fELF\0\0\xff")
    reports: list[FileReport] = []
    first, second = read_documents(tmp_path, on_file=reports.append)
    assert (first.metadata["title"], second.metadata["title"]) == ("ferry(1)", "ferry(8)")
    at = first.text.index("23:40")
    assert place_of(Chunk(first.id, at, at + 5, "23:40", metadata=first.metadata)).headings == (
        "OPTIONS",
        "Night ferry",
    )
    assert {Path(report.path).name: report.status for report in reports} == {
        "ferry.1.gz": "read",
        "ferry.8": "read",
        "lib.so.1": "skipped",
        "syslog.1": "skipped",
    }
