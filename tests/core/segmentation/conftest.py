import gzip
import json
import random
from pathlib import Path

import pytest

from precise_rag import Segmenter
from support.segmentation import TOPICS


@pytest.fixture(scope="session")
def small() -> Segmenter:
    return Segmenter.from_pretrained("small")


def document(number: int) -> dict:
    chance = random.Random(number)
    sections = []
    for topic in chance.sample(TOPICS, 3):
        sentences = [f"{sentence}." for sentence in topic.split("|") * 2]
        sections.append({"paragraphs": [" ".join(sentences[:3]), " ".join(sentences[3:])]})
    return {"id": str(number), "domain": "toy", "sections": sections}


@pytest.fixture(scope="session")
def toy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("toy") / "toy.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(document(number)) + "\n" for number in range(60))
    return path
