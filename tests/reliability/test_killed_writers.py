"""Writers that are killed at any moment: what is left has the scores of a rebuilt collection."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from precise_rag.errors import EmptyIndexError
from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder

_WRITER = """
import random, sys
from precise_rag.index import DatabaseIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

location, draw = sys.argv[1], random.Random(int(sys.argv[2]))
index = DatabaseIndex(location, HashEncoder(16))
WORDS = "cat dog fish owl fox hen".split()
print("ready", flush=True)
while True:
    ids = draw.sample("abcdefgh", draw.randint(1, 3))
    change = draw.random()
    if change < 0.7:
        index.add([
            Document(i, " ".join(
                f"The {draw.choice(WORDS)} saw a {draw.choice(WORDS)}." for _ in range(draw.randint(0, 4))
            ), {"draw": draw.random()})
            for i in ids
        ])
    elif change < 0.95:
        index.delete(set(ids) & set(index.document_ids))
    else:
        index.optimize()
"""


def scores(index: DatabaseIndex) -> dict[str, dict[str, float]]:
    """The scores of all sentences for a question, by their ids."""
    try:
        found = index.search("Which cat saw an owl?", 1_000, returns="sentence")
    except EmptyIndexError:
        return {}
    return {c.id: {"score": c.score, **c.scores} for c in found}


@pytest.mark.slow
def test_what_a_killed_writer_leaves_scores_as_a_rebuilt_collection(new_location: Callable[[], str]) -> None:
    location, draw = new_location(), random.Random(0)
    for number in range(4):
        command = [sys.executable, "-c", _WRITER, location, str(number)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(draw.uniform(0, 0.6))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        left = DatabaseIndex(location, HashEncoder(16))
        documents = [left.document(identifier) for identifier in left.document_ids]
        rebuilt = DatabaseIndex.build(documents, HashEncoder(16), location=new_location())
        expected = scores(rebuilt)
        found = scores(left)
        assert found.keys() == expected.keys()
        for identifier, its in expected.items():
            assert found[identifier] == pytest.approx(its, rel=1e-4, abs=1e-4, nan_ok=True)
        assert len(left) == len(rebuilt)
        left.close()
        rebuilt.close()
