import json

import pytest

from precise_rag import prune
from precise_rag.sentences import split_sentences
from precise_rag.structure import read_structure
from support.documents import read_cases, read_document

ITEMS = [
    {"id": n, "name": f"{name} Gate", "lines": {"first": f"U{n}", "last": f"S{n}"}, "steps": 20 + 3 * n}
    for n, name in enumerate(("North", "South", "Old", "New", "Upper", "Lower", "Red", "White"))
]
STATIONS = {"status": "ok", "data": {"page": 1, "items": ITEMS}}
COMPOSE, DEPLOYMENTS = read_document("compose.yaml"), read_document("deployments.yaml")


def blocks(text: str) -> list[tuple[tuple[str, ...], str]]:
    """What is above each block, and its words."""
    found = read_structure(text)
    assert "".join(text[block.start : block.end] for block in found.blocks) == text
    return [(found.above(block.start), text[block.start : block.end].strip()) for block in found.blocks]


def block_of(text: str, words: str) -> tuple[tuple[str, ...], str]:
    return next(block for block in blocks(text) if words in block[1])


@pytest.mark.parametrize(
    "text",
    {
        "one line": json.dumps(STATIONS),
        "indented": json.dumps(STATIONS, indent=2),
        "Python": repr(STATIONS),
        "a part": json.dumps(STATIONS, indent=2)[300:],
        "a part of one line, from within a string": json.dumps(STATIONS)[130:],
    }.items(),
    ids=lambda case: case[0],
)
def test_an_object_of_a_list_is_one_block_below_its_keys(text: tuple[str, str]) -> None:
    name, data = text
    above, words = block_of(data, "Old Gate")
    assert above == (() if "part" in name else ("data", "items"))
    assert "26" in words
    assert "U2" in words
    assert "South" not in words
    assert "New" not in words
    assert read_structure(data).format == "data"
    assert [
        data[start:end].strip() for start, end in split_sentences(data) if "Old Gate" in data[start:end]
    ] == [words]


def test_each_line_of_json_is_a_block() -> None:
    lines = [json.dumps(item) for item in ITEMS]
    assert blocks("\n".join(lines)) == [((), line) for line in lines]


def test_values_of_yaml_are_below_their_keys_and_a_document_of_several_below_its_first_values() -> None:
    above, words = block_of(COMPOSE, "RETRIES=2")
    assert above == ("services",)
    assert words.startswith("mail:\n    image: shop/mail:2.2")
    assert words.endswith("- LEVEL=info")
    above, words = block_of(DEPLOYMENTS, 'memory: "556Mi"')
    assert len(above) == 1
    assert above[0].startswith("metadata: name: search")
    assert words.startswith("spec:\n  replicas: 5")


def test_keys_of_yaml_may_have_spaces_or_quotes() -> None:
    above, words = block_of(read_document("lock_settings.yaml"), "45 minutes")
    assert above == ("lock",)
    assert words.startswith('"upper gate":')


def test_settings_in_braces_are_below_the_lines_that_open_them() -> None:
    server = (
        "  server {\n    listen 80%d0;\n    location / {\n      proxy_pass http://10.0.0.%d;\n    }\n  }\n"
    )
    nginx = "http {\n  include mime.types;\n" + "".join(server % (n, n) for n in range(5)) + "}\n"
    above, words = block_of(nginx, "10.0.0.3")
    assert above == ("http",)
    assert words.startswith("server {\n    listen 8030;")
    pump = (
        'pump "%d" {\n  size  = "t%d.large"\n  nets = [\n    "a",\n  ]\n  tags = {\n    Name = %d\n  }\n}\n\n'
    )
    settings = "".join(pump % (n, n, n) for n in range(4))
    assert block_of(settings, "t2.large")[1] == (pump % (2, 2, 2)).strip()


def test_a_long_object_of_a_list_is_named_by_its_first_values() -> None:
    long = [{"id": n, "name": f"Pump {n}", **{f"value {m}": m * n for m in range(40)}} for n in range(3)]
    above, _ = block_of(json.dumps(long), '"value 30": 60')
    assert len(above) == 1
    assert above[0].startswith("name: Pump 2")


def test_text_in_a_value_is_split_into_sentences() -> None:
    review = " ".join(f"The pump number {n} was changed in May." for n in range(30))
    text = json.dumps({"title": "Report", "body": review})
    units = [text[start:end].strip() for start, end in split_sentences(text)]
    assert "The pump number 7 was changed in May." in units


@pytest.mark.parametrize("text", read_cases("structure.json", "no data"))
def test_other_text_is_no_data(text: str) -> None:
    assert read_structure(text).format != "data"


@pytest.mark.parametrize("text", [json.dumps(STATIONS), json.dumps(STATIONS, indent=2), repr(STATIONS)])
def test_the_whole_object_that_answers_is_kept(text: str) -> None:
    kept = prune(text, "How many steps does White Gate have?", max_tokens=120).text
    assert "White Gate" in kept
    assert "41" in kept


def test_rows_of_csv_are_kept_with_their_head() -> None:
    rows = [f"{name} {n},U{n},{1950 + n},{20 + 3 * n},no" for n in range(9) for name in ("Old", "New", "Red")]
    text = "\n".join(["Station,Line,Opened,Steps,Lift", *rows])
    kept = prune(text, "How many steps does Red 7 have?", max_tokens=100).text
    assert "Station | Line | Opened | Steps | Lift]" in kept
    assert "Red 7,U7,1957,41,no" in kept
