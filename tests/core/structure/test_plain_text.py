"""Plain and restructured text, transcripts, chats and tables."""

import pytest

from precise_rag.structure import read_structure
from precise_rag.structure.running import running_lines
from precise_rag.structure.tables import table_rows
from support.documents import read_cases, read_document
from support.structures import kinds


def test_underlined_text_and_directives() -> None:
    document = read_document("ferry.rst")
    found = read_structure(document)
    assert found.format == "text"
    assert kinds(found) == [
        *("heading1", "paragraph", "code", "heading2", "table", "item1", "item1"),
        *("heading2", "code", "paragraph"),
    ]


def test_plain_text() -> None:
    document = read_document("keeper.txt")
    found = read_structure(document)
    assert [kind[:4] for kind in kinds(found)] == [
        *("head", "para", "head", "para", "item", "item", "head", "para", "head", "para")
    ]


def test_titles_with_numbers_stand_right_above_their_text_and_a_number_may_begin_a_wrapped_line() -> None:
    document = read_document("lock_manual.txt")
    found = read_structure(document)
    starts = [document[block.start :].split("\n")[0] for block in found.blocks if block.kind == "heading"]
    assert starts == ["1. The lock", "2. Passing the lock", "2.1. Calling the keeper", "2.2. Waiting"]
    assert found.above(document.index("A boat may")) == ("2. Passing the lock", "2.2. Waiting")
    assert [document[block.start :][:2] for block in found.blocks if block.kind == "item"][4:] == ["1.", "2."]


@pytest.mark.parametrize("mark", ["{}. ", "{}) ", "{} "])
@pytest.mark.parametrize(("title", "below"), read_cases("structure.json", "titles of a series"))
def test_a_title_right_above_its_text_is_one_if_others_of_its_series_are_apart(mark, title, below) -> None:
    second = f"{mark.format(2)}{title}"
    ends = f"{mark.format(1)}Use\n\nTake one with water.\n\n", f"{mark.format(3)}Storage\n\nKeep it dry.\n"
    text = f"{second}\n{below}\n\n".join(ends)
    assert read_structure(text, "text").above(text.index(below)) == (second,)


def test_what_is_indented_below_a_term_is_no_heading_whatever_it_shows() -> None:
    assert "heading" not in str(kinds(read_structure(read_document("pump_manual.txt"))))


@pytest.mark.parametrize("line", read_cases("structure.json", "no headings"))
def test_sentences_are_no_headings(line: str) -> None:
    found = read_structure(f"Before it.\n\n{line}\n\nafter it, in small letters.\n")
    assert "heading" not in str(kinds(found))


def test_items_have_numbers_of_several_levels() -> None:
    text = "3.1. Which one is mine?\n  3.1.1. The stable one that was\n  released\n3.2. How do I move?\n"
    found = read_structure(text)
    assert kinds(found) == ["item1", "item2", "item1"]
    assert [text[block.start :].split()[0] for block in found.blocks] == ["3.1.", "3.1.1.", "3.2."]


@pytest.mark.parametrize("text", read_cases("structure.json", "items"))
def test_items_are_marked_in_the_ways_of_many_scripts(text: str) -> None:
    assert kinds(read_structure(text)) == ["paragraph", "item1", "item1"]
    assert kinds(read_structure("г. Тверь, 3 мая\nБыли: Орлов, Белова.")) == ["paragraph"]


@pytest.mark.parametrize(("title", "line", "level"), read_cases("structure.json", "headings"))
def test_titles_of_other_formats_and_questions_with_numbers_are_headings(title, line, level) -> None:
    text = f"Before it.\n\n{line}\n\nUse the blue one, which is in the shed behind the mill of the harbour.\n"
    found = read_structure(text, "text")
    assert kinds(found) == ["paragraph", f"heading{level}", "paragraph"]
    assert found.above(text.index("Use")) == (title,)


@pytest.mark.parametrize(("title", "titles"), read_cases("structure.json", "titles that count up"))
def test_lines_with_a_word_and_a_number_that_counts_up_are_titles(title: str, titles: list[str]) -> None:
    body = "Here the fee of the harbour is set, and who has to pay it, and when.\n\n"
    text = "".join(title.format(number) + body for number in (1, 2))
    found = read_structure(text)
    places = [text.index("Here"), text.rindex("Here")]
    assert [(found.above(place) or ("",))[-1] for place in places] == titles
    clauses = "".join(f"มาตรา {number} ให้ยื่นคำขอภายในสามสิบวัน\n\n" for number in "๑๒๓")
    assert "heading" not in " ".join(kinds(read_structure(clauses)))


def test_running_heads_are_no_headings() -> None:
    page = "Harbour of Brandt\n\nThe lamp is lit at dusk and put out at dawn, on every day of the year.\n\n"
    assert kinds(read_structure(page, "text")) == ["heading20", "paragraph"]
    for no_head in (page * 3, page.replace("Harbour of Brandt", "EN\\r\\n")):
        assert "heading20" not in kinds(read_structure(no_head, "text"))


@pytest.mark.parametrize(("lines", "are_running"), read_cases("structure.json", "running lines"))
def test_running_lines_differ_by_the_number_of_the_page(lines: tuple[str, ...], are_running: bool) -> None:
    assert running_lines([*lines, "The lamp is lit."]) == [are_running] * 3 + [False]
    assert not any(running_lines(lines[:2]))


@pytest.mark.parametrize("sign", ["Maria", "Maria Keller", "Best,\nMaria"])
def test_who_wrote_a_mail_stands_above_what_is_quoted_and_a_name_below_it_does_not(sign: str) -> None:
    tom, jonas = "On Mon, 11 Mar 2024 at 17:02, Tom wrote:", "Am 10.03.24 schrieb Jonas:"
    text = f"Take the old mill.\n\n{sign}\n\n{tom}\n> No.\n>\n> {jonas}\n>> It is dear.\n\nSo what?\n"
    found = read_structure(text)
    assert "heading" not in str(kinds(found))
    assert [found.above(text.index(said)) for said in ("> No", ">> It", "So")] == [(tom,), (tom, jonas), ()]
    head = "From: Tom <tom@harbour.example>\nSent: 11 March 2024\nTo: Maria\n"
    text = f"Fine.\n\n{sign}\n\n-----Original Message-----\n{head}\nIt is dear.\n\n{head}\nOh.\n"
    above = read_structure(text).above
    assert above(text.index("It")) == above(text.index("Oh")) == ("From: Tom Sent: 11 March 2024 To: Maria",)


@pytest.mark.parametrize(
    "order", ["Date|From|To", "Message-ID|To|X-Id|Date|From", "Received|From|To|Date|Cc"]
)
@pytest.mark.parametrize("before", ["", "From ada@harbour.example Mon Sep  4 18:40:02 2023\n"])
def test_the_head_of_a_raw_mail_is_one_title_whatever_its_order(order: str, before: str) -> None:
    fields = [f"{name}: {name} of it,\n\tat 18:40\n" for name in order.split("|")]
    text = f"{before}{''.join(fields)}Content-Transfer-Encoding: 8bit\n\nIt is dear.\n\n" * 2
    found = read_structure(text)
    assert kinds(found) == ["heading1", "paragraph"] * 2
    shown = [name for name in order.split("|") if name in ("Date", "From", "To")]
    assert found.above(text.rindex("It")) == (" ".join(f"{name}: {name} of it, at 18:40" for name in shown),)


def test_lines_that_nobody_says_are_titles_of_a_transcript() -> None:
    said = "Ilse: Look at the oil, please\n\nJonas B: I did.\n\n"
    text = f"{said * 2}What the oil costs\n\n{said}He left.\n\n{said}and more\n\n{said}Wicks, etc.\n\n{said}"
    found = read_structure(text)
    assert [text[block.start : block.end] for block in found.blocks if block.kind == "heading"] == [
        "What the oil costs\n\n",
        "Wicks, etc.\n\n",
    ]
    assert found.above(text.index("He left")) == ("What the oil costs",)


@pytest.mark.parametrize("stamp", read_cases("structure.json", "times of turns"))
def test_turns_of_a_chat_begin_with_a_time(stamp: str) -> None:
    lines = [f"{stamp}{name} eels: {i}\n" for i, name in enumerate(("anna:", "ben_2:") * 4)]
    assert kinds(read_structure("".join(lines))) == ["turn"] * 8
    for form in ("{0}<{1}> eels: {2}\n", "{0}< {1}> eels: {2}\n", "{0}{1}\neels: {2}\n\n"):
        lines = [form.format(stamp, name, i) for i, name in enumerate(("anna", "ben_2") * 4)]
        assert kinds(read_structure("".join(lines))) == ["turn"] * 8
    assert "turn" not in kinds(read_structure("".join(line.removeprefix(stamp) for line in lines)))


@pytest.mark.parametrize(
    "head", ["{}  9:12 AM", "{}, [01.03.2024 09:12]", "{} — 01/03/2024 9:12 PM", "{} (09:12)"]
)
def test_a_line_of_a_name_and_a_time_begins_a_turn(head: str) -> None:
    heads = [head.format(name) for name in ("Ilse", "Jonas B") * 4]
    assert (
        kinds(read_structure("\n\n".join(f"{one}\nThey come in May, or later." for one in heads)))
        == ["turn"] * 8
    )
    assert "turn" not in kinds(read_structure("\n".join(heads)))


@pytest.mark.parametrize(("post", "title"), read_cases("structure.json", "posts"))
def test_short_lines_with_a_date_stand_above_a_post_but_not_if_they_sign_it(post: str, title: str) -> None:
    posts = [{"name": name, "day": day} for day, name in enumerate(("ada", "bo_b", "cyn8"), 1)]
    text = "# Oven door\n\n" + "".join(f"{post}\n\n".format(**one) for one in posts)
    found = read_structure(text)
    titles = [found.above(text.index(f"Take the seal of {one['name']}"))[1:] for one in posts]
    assert titles == [(title.format(**one),) * bool(title) for one in posts]


def test_the_first_of_labels_that_come_again_in_one_order_is_a_heading() -> None:
    dishes = [f"Title: {name}\nServes: 4\nTime: 50\n\nPeel it. Bake it for {name}.\n\n" for name in "ABCD"]
    text = "".join(dishes)
    found = read_structure(text)
    assert [text[block.start : block.end].strip() for block in found.blocks if block.kind == "heading"] == [
        f"Title: {name}" for name in "ABCD"
    ]
    assert [found.above(text.index(f"for {name}")) for name in "ABCD"] == [
        (f"Title: {name}",) for name in "ABCD"
    ]


@pytest.mark.parametrize("label", ["{}:", "**{}:**", "**{}**:", "<p>{}:", "<p><b>{}:</b>", "  <p>{}:"])
def test_turns_begin_with_a_label_also_with_marks(label: str) -> None:
    end = "</p>" if "<" in label else ""
    said = [f"{label.format(name)} They come in May,\nor later.{end}" for name in ("Ilse", "Jonas B") * 4]
    text = "\n\n".join(said)
    found = read_structure(text)
    assert kinds(found) == ["turn"] * 8
    assert [text[block.start : block.end].strip() for block in found.blocks] == [one.strip() for one in said]


GRID, SIMPLE, MARKDOWN, SPACES, RULED, HTML = read_document("tables.txt").split("%%\n")


@pytest.mark.parametrize(
    ("table", "head", "rows"),
    [
        (GRID, "Option | Meaning of it", ["to the left", "to the right"]),
        (SIMPLE, "A | not A", ["or so", "True   False"]),
        (MARKDOWN, "a | b", ["| 1 | 2 |", "| 3 | 4 |"]),
        (SPACES, "Preset | Size | Memory", ["256 KiB", "9 MiB"]),
        (RULED, "Signal | Standard | Action | Comment", ["Timer", "or the end"]),
        (HTML, "Name | Use", ["<td>b</td>"]),
    ],
)
def test_rows_and_the_head_of_a_table_are_read(table: str, head: str, rows: list[str]) -> None:
    text = "Before.\n" + table
    found = table_rows(text, 8, len(text))
    assert found.n_head == 1
    assert found.starts[0] == 8
    parts = [text[a:b] for a, b in zip(found.starts, [*found.starts[1:], len(text)], strict=True)]
    assert len(parts) == 1 + len(rows)
    assert all(part in found_part for part, found_part in zip(rows, parts[1:], strict=True))
    assert set(found.titles) == {head}
    for without in ("| 1 | 2 |\n| 3 | 4 |\n", "a\tb\n", "\n", "+--+\n"):
        assert {*table_rows(without, 0, len(without)).titles} <= {""}


WIDE = [[f"B-{i}", f"bolt {i}", str(20 + i), f"{i}.50"] for i in range(30)]
HEAD = ["Part", "Name", "Torque", "Price"]
TITLE = " | ".join(HEAD)
TWO = [["Item", "North", "", "South"], ["", "Plan", "Actual", "Plan"]]


def barred(*rows: list[str]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def tagged(*rows: list[str], cell: str = "<td>{}</td>") -> str:
    return "".join(f"<tr>{''.join(map(cell.format, row))}</tr>\n" for row in rows)


RULE = barred(["---"] * 4)
GRID_RULE = "+----+----+----+----+\n"
MERGED = "<tr><td rowspan=2>Item<td colspan=2>North<td>South</tr><tr><td>Plan<td>Actual<td>Plan</tr>"


@pytest.mark.parametrize(
    ("table", "title"),
    [
        (barred([""] * 4) + RULE + barred(HEAD, *WIDE), TITLE),
        (barred([""] * 4) + RULE + barred(["Port", "Land", "Tongue", "Master"], *[["a", "b", "c", "d"]] * 9),
         "Port | Land | Tongue | Master"),
        (barred(["", "Jan", "2020", "2021"]) + RULE + barred(*WIDE), "| Jan | 2020 | 2021"),
        (barred(TWO[0]) + RULE + barred(TWO[1], *WIDE), "Item | North Plan | North Actual | South Plan"),
        (barred(*WIDE[:1]) + RULE + barred(*WIDE[1:]), ""),
        (barred([""] * 2) + "|---|---|\n" + barred(["Voltage", "24 V"], ["Colour", "grey"]), ""),
        ("<table>" + tagged(HEAD, *WIDE), TITLE),
        ("<table>" + tagged(["Port", "Land"], cell="<td><b>{}</b></td>") + tagged(*WIDE), "Port | Land"),
        ("<table>" + tagged(["<td colspan=4>Prices"], cell="{}") + tagged(HEAD, *WIDE), f"Prices: {TITLE}"),
        ("<table>" + MERGED + tagged(*WIDE), "Item | North Plan | North Actual | South Plan"),
        ("<table>" + tagged(*WIDE), ""),
        (GRID_RULE + barred(HEAD) + GRID_RULE + barred(*WIDE) + GRID_RULE, TITLE),
        (GRID_RULE + GRID_RULE.join(map(barred, [HEAD, *WIDE])) + GRID_RULE, TITLE),
        ("+--+--+\n".join(["", "|  Word  |  Use  |\n", *["|a |b |\n|c |d |\n"] * 9, ""]), "Word | Use"),
        (barred(HEAD) + "|----+----+----+----|\n" + barred(*WIDE), TITLE),
        ("Part | Name | Torque | Price\n----+----+----+----\n" + barred(*WIDE), TITLE),
        ("┌──┬──┐\n│Word│Use │\n├──┼──┤\n" + "├──┼──┤\n".join(["│a│b │\n│ │c │\n"] * 30), "Word | Use"),
        ("|===\n" + barred(HEAD) + "\n" + barred(*WIDE) + "|===\n", TITLE),
        ("|===\n" + barred(HEAD) + "".join("\n|" + "\n|".join(row) + "\n" for row in WIDE) + "|===\n", TITLE),
    ],
)  # fmt: skip
def test_heads_are_told_by_their_cells(table: str, title: str) -> None:
    found = table_rows(table, 0, len(table))
    assert " ".join(found.titles[-1].split()) == title
    if title == TITLE:
        assert len(found.starts) == found.n_head + len(WIDE), "no row is cut"
        for above, text_format in (("", None), ("# A\n\n", "markdown"))[: 1 if "|=" in table else 2]:
            structure = read_structure(above + table, text_format)
            assert kinds(structure).count("table") == 1
            assert structure.above(len(above) + table.rindex("bolt"))[-1] == TITLE


def test_the_head_stands_above_the_rows_of_a_table() -> None:
    rows = "".join(f"| o{number} | sets the pump to the speed {number} |\n" for number in range(20))
    text = f"# Pump\n\nText.\n\n| option | meaning |\n|---|---|\n{rows}\nAfter.\n\n{MARKDOWN}"
    structure = read_structure(text)
    assert structure.above(text.index("| o7")) == ("Pump", "option | meaning")
    assert structure.above(text.index("| option")) == ("Pump",)
    assert structure.above(text.index("After")) == ("Pump",)
    assert structure.above(text.index("| 1 |")) == ("Pump", "a | b")


@pytest.mark.parametrize(("table", "row", "title"), read_cases("structure.json", "names of groups of rows"))
def test_a_row_with_one_cell_names_the_rows_below_it(table: str, row: str, title: str) -> None:
    assert read_structure(f"It is.\n\n{table}").above(8 + table.index(row)) == (title,)


@pytest.mark.parametrize(("line", "title"), read_cases("structure.json", "captions"))
def test_short_lines_above_a_table_are_its_caption(line: str, title: str) -> None:
    for table, head in ((barred(HEAD) + RULE + barred(*WIDE), TITLE), ("a\t1\nb\t2\nbolt\t3\n", "")):
        structure = read_structure(f"Text.\n\n{line}\n\n{table}\nAfter.\n")
        above = (title + head).removesuffix(": ")
        assert structure.above(8 + len(line) + table.index("bolt")) == ((above,) if above else ())
        assert structure.above(structure.blocks[-1].start) == ()


def test_a_command_is_a_term_however_long_it_is_and_where_it_goes_on_is_no_title() -> None:
    first, below = "     hang-lamp [-abdP] [-c colour-of-glass] [-n name] [-s shelf]", 13 * " "
    for rest in ("", f" [-t\n{below}lamp]", f"\n{below}[-w wall]\n{below}[-x] lamp"):
        text = f"LAMPS\n\n{first}{rest}\n{below}      (alias: hang)\n{below}Hang it.\n\n{below}It burns.\n"
        above = read_structure(text).above(text.index("It burns"))
        assert above[0] == "LAMPS"
        assert above[-1].startswith("hang-lamp -abdP -c colour-of-glass")


@pytest.mark.parametrize(("mark", "lead_in"), read_cases("structure.json", "lead-ins"))
def test_a_lead_in_right_below_an_item_begins_a_block(mark: str, lead_in: str) -> None:
    items = mark.format("headache") + mark.format("pain in the arm, and much of it in the afternoon")
    text = "".join(lead_in.format(word) + items for word in ("Often", "Seldom"))
    found = read_structure(text)
    kind = "heading6" if lead_in.endswith("**\n") else "paragraph"
    assert kinds(found) == [kind, "item1", "item1"] * 2
    above = found.above(text.rindex("pain"))
    assert [title.startswith("Seldom") for title in above] == [True] * (kind == "heading6")
