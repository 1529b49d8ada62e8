"""Language models: a client, wrappers for models of other libraries, and budgets."""

from precise_rag.llm.budget import Budget as Budget
from precise_rag.llm.openai_chat import OpenAIChat as OpenAIChat
from precise_rag.llm.wrap import load_llm as load_llm
