"""What importing and running the packages loads, and what is said where a framework is missing."""

import os
import subprocess
import sys

import pytest

from precise_rag import Document, HybridIndex, load_encoder

TORCH = "torch transformers sentence_transformers"
FRAMEWORKS = "llama_index langchain langchain_classic langchain_core"
HEAVY = f"{TORCH} {FRAMEWORKS} faiss nltk openai cohere"
TEXT = "Ilse keeps the lamp. The lamp is lit at dusk.\n\nTwo ferries cross the river. Bread prices rose."
QUESTION = "Who keeps the lamp?"


def command(*arguments: str) -> str:
    return f"from precise_rag.cli import main\nassert main({arguments!r}) == 0\n"


SEGMENTS = f"""
from precise_rag import Segmenter
for model in ("small", "sage"):
    assert Segmenter.from_pretrained(model, device="cpu").segment({TEXT!r})
"""
FIND = """
from {} import Document
from {}_precise import PreciseRetriever
for preset in ("precise", "paretorag", "recursive"):
    documents = [Document({}={!r})]
    assert PreciseRetriever.from_documents(documents, preset=preset).{}({!r})
"""
LANGCHAIN = FIND.format("langchain_core.documents", "langchain", "page_content", TEXT, "invoke", QUESTION)
LLAMAINDEX = FIND.format("llama_index.core", "llamaindex", "text", TEXT, "retrieve", QUESTION)
NOT_LOADED = {
    "import precise_rag\nfor name in precise_rag.__all__: getattr(precise_rag, name)": HEAVY,
    "from precise_rag import load_llm\nload_llm('gpt-4o'), load_llm(lambda prompt: 'x')": HEAVY,
    "import langchain_precise": HEAVY,
    "import llamaindex_precise": HEAVY,
    SEGMENTS: TORCH,
    LANGCHAIN: TORCH,
    LLAMAINDEX: TORCH,
    command("segment", "notes.txt"): TORCH,
    command("index", "--out", "new", "notes.txt"): TORCH,
    command("demo", "notes.txt", "--question", QUESTION): TORCH,
    command("ask", "index", QUESTION): f"{TORCH} scipy bm25s numba multiprocessing.pool pydoc_data.topics",
}
"""Code, and the modules that it does not load."""
LOADED_BEFORE = {
    # 1.0 of the splitters brings torch and nltk itself
    "import langchain_precise": "langchain_core, langchain_text_splitters",
    "import llamaindex_precise": "llama_index.core",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a text and an index."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "notes.txt").write_text(TEXT)
    HybridIndex.build([Document("a", TEXT)], load_encoder(device="cpu")).save(folder / "index")
    return folder


def run(code, **options):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, **options
    )


@pytest.mark.parametrize("code", NOT_LOADED)
def test_nothing_is_loaded_that_is_not_needed(code, folder):
    done = run(
        f"import sys, {LOADED_BEFORE.get(code, 'os')}\nbefore = set(sys.modules)\n{code}\n"
        f"print([name for name in {NOT_LOADED[code]!r}.split() if name in sys.modules.keys() - before])",
        cwd=folder,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_nothing_is_written_down_about_what_runs(folder, tmp_path):
    """ONNX Runtime would, to send it to its makers."""
    env = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    done = run(command("ask", "index", QUESTION), cwd=folder, env={**env, "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("adapter", "framework"), [("llamaindex", "llama_index"), ("langchain", "langchain_core")]
)
def test_without_its_framework_an_adapter_names_the_extra(adapter, framework):
    done = run(f"import sys\nsys.modules[{framework!r}] = None\nimport {adapter}_precise")
    assert done.returncode == 1
    assert f"pip install 'precise-rag[{adapter}]'" in done.stderr.splitlines()[-1]
