"""Doubles for what users bring, for their tests and ours."""

from precise_rag.testing.encoder import HashEncoder as HashEncoder
from precise_rag.testing.llm import ScriptedLLM as ScriptedLLM
