import subprocess
import sys

import pytest

from precise_rag.errors import InputError
from precise_rag.llm import OpenAIChat, load_llm
from precise_rag.testing import ScriptedLLM


def test_an_llm_is_returned_unchanged_and_a_name_is_an_openai_model():
    scripted = ScriptedLLM(["x"])
    assert load_llm(scripted) is scripted
    named = load_llm("gpt-4o-mini")
    assert isinstance(named, OpenAIChat)
    assert named.name == "gpt-4o-mini"


@pytest.mark.parametrize("thing", [3, None, object(), dict])
def test_other_things_are_refused(thing):
    with pytest.raises(InputError, match="llm must be the name of a model"):
        load_llm(thing)


def test_loading_imports_no_framework():
    code = (
        "import sys; from precise_rag.llm import load_llm; load_llm('gpt-4o'); load_llm(lambda prompt: 'x')\n"
        "print([m for m in ('openai', 'llama_index', 'langchain_core') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
