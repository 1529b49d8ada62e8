"""Asks for LlamaIndex by the name of the extra that installs it."""

from precise_rag._extras import require

require("llama_index.core", extra="llamaindex")
