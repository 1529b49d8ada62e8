import subprocess
import sys

import precise_rag

HEAVY = (
    "torch",
    "faiss",
    "nltk",
    "openai",
    "cohere",
    "llama_index",
    "langchain_core",
    "sentence_transformers",
)


def test_import_stays_light():
    code = f"import sys, precise_rag; print([m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_exported_name_loads_and_stays_light():
    code = (
        "import sys, precise_rag\n"
        "for name in precise_rag.__all__: getattr(precise_rag, name)\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_exported_names_are_listed():
    assert set(precise_rag.__all__) <= set(dir(precise_rag))
