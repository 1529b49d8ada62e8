"""Asks for LangChain by the name of the extra that installs it."""

from precise_rag._extras import require

require("langchain_core", extra="langchain")
require("langchain_text_splitters", extra="langchain")
