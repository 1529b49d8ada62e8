"""Language models: an OpenAI client, adapters for other libraries' models, and budgets."""

from precise_rag.llm.budget import Budget
from precise_rag.llm.load import load_llm
from precise_rag.llm.openai import OpenAIChat

__all__ = ["Budget", "OpenAIChat", "load_llm"]
