"""Saving survives being killed at any moment, and readers may read while a writer writes."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from precise_rag.encoders import load_encoder
from precise_rag.index import DenseIndex, load_index
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]


SETUP = """
import os, random, signal, sys
from pathlib import Path
from precise_rag.index import HybridIndex, load_index
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

path = Path(sys.argv[1])
encoder = HashEncoder()

def build(name, text, n):
    documents = [Document(f"{name}{i}", text.format(i)) for i in range(n)]
    return HybridIndex.build(documents, encoder)

old = build("old", "The old cat number {} sleeps. It purrs.", 20)
new = build("new", "A new dog number {} barks. It runs.", 30)
old.save(path)
states = {old.document_ids: old, new.document_ids: new}

def check():
    loaded = load_index(path, encoder)
    expected = states[loaded.document_ids]
    assert loaded.search("dog or cat", 5) == expected.search("dog or cat", 5)
    return loaded.document_ids
"""


DIE_AT_EACH_STEP = """
step = 0
finished = False
while not finished:
    step += 1
    child = os.fork()
    if child == 0:
        calls = 0
        def dying(call):
            def wrapped(*args):
                global calls
                calls += 1
                if calls == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*args)
            return wrapped
        os.fsync, os.replace = dying(os.fsync), dying(os.replace)
        new.save(path)
        os._exit(0)
    finished = os.waitpid(child, 0)[1] == 0
    seen = check()
    if seen == new.document_ids and not finished:
        old.save(path)
assert seen == new.document_ids and step > 4
assert len(list(path.glob("data-*"))) == 1, "what a killed save left is cleared by the next one"
"""


DIE_AT_RANDOM = """
import time
random.seed(0)
for attempt in range(15):
    child = os.fork()
    if child == 0:
        while True:
            new.save(path)
            old.save(path)
    time.sleep(random.random() / 50)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    check()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("scenario", [DIE_AT_EACH_STEP, DIE_AT_RANDOM], ids=["each-step", "random"])
def test_a_kill_leaves_the_old_index_or_the_new_one(scenario: str, tmp_path: Path) -> None:
    script = textwrap.dedent(SETUP + scenario)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "index")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_index_names_the_encoder_that_it_needs(tmp_path: Path) -> None:
    DenseIndex.build([], load_encoder()).save(tmp_path / "index")
    assert load_index(tmp_path / "index").encoder.name == "all-MiniLM-L6-v2"  # type: ignore[union-attr]


def test_vectors_are_memory_mapped_after_loading(tmp_path: Path) -> None:
    index = DenseIndex.build(OLD, HashEncoder())
    index.save(tmp_path / "index")
    loaded = DenseIndex.load(tmp_path / "index", index.encoder)
    vectors = loaded._parts[0].block.columns["vectors"]
    assert isinstance(vectors, np.memmap)
    assert not vectors.flags.writeable
