"""Documents of several formats, each with headings, lead-ins, lists, tables, code or turns."""

_FACTS = (
    "The traps are lifted at dawn, before the tide turns.",
    "Oak lasts longer than willow, but it is heavy when wet.",
    "A keeper writes each catch into the book by the door.",
    "In May the eels run thick, and two people share a boat.",
    "Fog stops the work until the bell on the pier has rung twice.",
    "Nobody sells before the ferry has come in.",
    "The old ropes were tarred; the new ones are not.",
    "What is not sold by noon goes back into the water.",
)


def _prose(start: int, n_sentences: int) -> str:
    return " ".join(_FACTS[(start + i) % len(_FACTS)] for i in range(n_sentences))


def _markdown() -> str:
    parts = ["# The eel traps of Brandt harbour\n", _prose(0, 5)]
    for number, name in enumerate(("Building a trap", "Lifting", "The book", "Selling"), start=1):
        parts += [f"## {name}\n", _prose(number, 4), "Do this, in this order:\n"]
        parts += ["\n".join(f"{step}. {_FACTS[(number + step) % 8]}" for step in range(1, 5)) + "\n"]
        parts += [f"### Counting, part {number}\n", "The following code counts them:"]
        parts += [
            f"```python\ncount = {number}\nfor trap in traps:\n    count += trap.eels\n\nprint(count)\n```"
        ]
        parts += [_prose(number + 3, 6), "The prices were:"]
        parts += ["| month | price |\n|-------|-------|\n| May   | 7     |\n| June  | 5     |\n"]
        parts += ["**In short**", _prose(number + 5, 3)]
    return "\n\n".join(parts) + "\n"


def _restructured() -> str:
    parts = ["*********\nEel traps\n*********", _prose(2, 6)]
    for number, name in enumerate(("The ``with`` rope", "Knots", "Weights", "Floats")):
        parts += [f"{name}\n{'=' * len(name)}", ".. index:: rope", _prose(number, 3)]
        parts += ["The following code::", "   with rope as line:\n       line.pull()\n\n   line.coil()"]
        parts += ["is the same as:", ".. code-block:: python\n\n   line = rope.take()\n   line.pull()"]
        parts += [f"#. {_FACTS[number]}\n\n#. {_FACTS[number + 1]}\n\n#. {_FACTS[number + 2]}"]
        parts += ["Changed later\n-------------", _prose(number + 4, 7)]
    return "\n\n".join(parts) + "\n"


def _html() -> str:
    parts = ["<html><head><title>Eels</title></head><body>", "<h1>Eels</h1>", f"<p>{_prose(1, 5)}</p>"]
    for number in range(5):
        parts += [f"<h2>Pier {number}</h2>", f"<p>{_prose(number, 5)}</p>", "<p>You need:</p>"]
        parts += ["<ul>", *(f"<li>{_FACTS[(number + i) % 8]}</li>" for i in range(3)), "</ul>"]
        parts += ["<p><b>Run this:</b></p>", "<pre><code>pull(rope)\ncoil(rope)</code></pre>"]
        parts += ["<table>", *(f"<tr><td>{i}</td><td>oak</td></tr>" for i in range(3)), "</table>"]
    return "\n".join([*parts, "</body></html>"])


def _numbered() -> str:
    parts = ["AGREEMENT ON TRAPS", _prose(3, 4)]
    for number in range(1, 6):
        parts += [f"{number}. Duties of keeper {'ABCDE'[number - 1]}", _prose(number, 5)]
        parts += [f"{number}.1 Tools", "The keeper brings:", f"- {_FACTS[number]}\n- {_FACTS[number + 1]}"]
        parts += ["SPECIAL TERMS", _prose(number + 2, 4)]
    return "\n\n".join(parts) + "\n"


def _transcript() -> str:
    speakers = ("Ilse", "Jonas", "Mr. Brandt")
    turns = [f"{speakers[i % 3]}: {_prose(i, 1 + i % 3)}" for i in range(60)]
    turns[10] = "Ilse: These are the points:"
    turns[30] = "Jonas: Yes."
    return "\n".join(turns) + "\n"


def _report() -> str:
    parts = ["Annual report\n============="]
    for number in range(1, 5):
        rows = [f"pier {i}       {10 * i}      {12 * i}" for i in range(1, 6)]
        parts += [f"{number}. Piers of part {'ABCD'[number - 1]}", _prose(number, 7)]
        parts += [f"Table {number}: Traps by pier", "\n".join(["Pier        2018   2019", *rows])]
    return "\n\n".join(parts) + "\n"


RUNNING_HEAD = "Brandt harbour, annual report"


def _pages() -> str:
    parts = []
    for number in range(6):
        head = f"{RUNNING_HEAD} | {number + 1}" if number % 2 else f"{RUNNING_HEAD}\n\nPage {number + 1} of 6"
        items = "\n".join(f"- {_FACTS[(number + i) % 8]}" for i in range(3))
        parts += [_prose(number, 7), "You need these things:", head, items, _prose(number + 2, 4)]
        parts += ["At dawn the keeper who was", head, f"asked last lifts it. {_prose(number + 5, 3)}"]
    return "\n\n".join(parts) + "\n"


_WRITERS = (_markdown, _restructured, _html, _numbered, _transcript, _report, _pages)
DOCUMENTS = {write.__name__.removeprefix("_"): write() for write in _WRITERS}
