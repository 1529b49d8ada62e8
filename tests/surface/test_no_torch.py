"""The way from documents to answers on a CPU imports neither torch nor transformers."""

import subprocess
import sys

import pytest

from precise_rag import Document, HybridIndex, load_encoder

HEAVY = ("torch", "transformers", "sentence_transformers")
TEXT = "Ilse keeps the lamp. The lamp is lit at dusk.\n\nTwo ferries cross the river. Bread prices rose."
QUESTION = "Who keeps the lamp?"

WAYS = {
    "segments": f"""
from precise_rag import Segmenter
for model in ("small", "sage-minilm"):
    assert Segmenter.from_pretrained(model, device="cpu").segment({TEXT!r})
""",
    "pipeline": f"""
from precise_rag import Document, PreciseRAG, load_encoder
rag = PreciseRAG.from_documents([Document("a", {TEXT!r})], encoder=load_encoder(device="cpu"))
assert rag.path.reranker.name == "cascade"
assert rag.retrieve({QUESTION!r}).kept
""",
    "commands": f"""
import pathlib
from precise_rag.cli import main
pathlib.Path("notes.txt").write_text({TEXT!r})
assert main(["segment", "notes.txt"]) == 0
assert main(["index", "--out", "index", "notes.txt"]) == 0
assert main(["ask", "index", {QUESTION!r}]) == 0
assert main(["demo", "notes.txt", "--question", {QUESTION!r}]) == 0
""",
    "langchain": f"""
from langchain_core.documents import Document
from langchain_precise import PreciseRetriever
for preset in ("precise", "paretorag", "recursive"):
    documents = [Document(page_content={TEXT!r})]
    assert PreciseRetriever.from_documents(documents, preset=preset).invoke({QUESTION!r})
""",
    "llamaindex": f"""
from llama_index.core import Document
from llamaindex_precise import PreciseRetriever
for preset in ("precise", "paretorag", "recursive"):
    documents = [Document(text={TEXT!r})]
    assert PreciseRetriever.from_documents(documents, preset=preset).retrieve({QUESTION!r})
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_the_way_imports_no_torch(way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert imported(WAYS[way], HEAVY) == "[]"


def test_asking_imports_nothing_that_only_building_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    path = str(tmp_path / "index")
    HybridIndex.build([Document("a", TEXT)], load_encoder(device="cpu")).save(path)
    code = f"from precise_rag.cli import main\nassert main(['ask', {path!r}, {QUESTION!r}]) == 0"
    assert imported(code, ("scipy", "bm25s", "numba", "multiprocessing.pool", "pydoc_data.topics")) == "[]"


def imported(code, modules):
    """Which of the modules a fresh process has imported after running the code."""
    code = f"{code}\nimport sys\nprint([m for m in {modules} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]
