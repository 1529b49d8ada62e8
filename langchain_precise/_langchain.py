"""Asks for the package langchain, which only its agents need, by the name of the extra that installs it."""

from precise_rag._extras import require

require("langchain.agents.middleware", extra="langchain-agents")
