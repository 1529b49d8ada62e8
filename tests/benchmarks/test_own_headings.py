import gzip
import json
from argparse import Namespace

from benchmarks.reranking import own_headings

PARAGRAPHS = ["The lamp is lit at dusk.", "Two ferries cross.", "Bread is baked twice."]
SECTIONS = [
    {"heading": None, "paragraphs": PARAGRAPHS[:1]},
    {"heading": "Ferries of the river", "paragraphs": PARAGRAPHS[1:2]},
    {"heading": "Bread of the town", "paragraphs": PARAGRAPHS[2:]},
]


def test_a_collection_has_headings_and_the_questions_that_it_can_answer(tmp_path):
    def write(name, rows):
        with gzip.open(tmp_path / f"dev_qa_{name}.jsonl.gz", "wt") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))

    write("docs_nq", [{"id": name, "sections": SECTIONS} for name in ("a", "b")])
    write(
        "questions_nq",
        [
            {"id": "1", "question": "What crosses?", "answers": ["ferries"], "doc_id": "a", "evidence": []},
            {"id": "2", "question": "How many?", "answers": ["six"], "doc_id": "a", "evidence": []},
        ],
    )
    args = Namespace(data=tmp_path, characters=1_000, sample=10, seed=0)
    found = own_headings.collection("nq", args)
    [document] = found.documents
    assert document.text == (
        "The lamp is lit at dusk.\n\n## Ferries of the river\n\nTwo ferries cross.\n\n"
        "## Bread of the town\n\nBread is baked twice."
    )
    assert [question.id for question in found.questions] == ["1"]  # nothing there says six
