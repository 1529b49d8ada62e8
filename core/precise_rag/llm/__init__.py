"""Language models: a client, wrappers for those that users have, budgets and prices."""

from precise_rag.llm.budget import Budget as Budget
from precise_rag.llm.openai_chat import OpenAIChat as OpenAIChat
from precise_rag.llm.prices import Price as Price
from precise_rag.llm.prices import PriceTable as PriceTable
from precise_rag.llm.prices import call_cost as call_cost
from precise_rag.llm.prices import cost_efficiency as cost_efficiency
from precise_rag.llm.tokens import estimate_prompt_tokens as estimate_prompt_tokens
from precise_rag.llm.tokens import estimate_tokens as estimate_tokens
from precise_rag.llm.wrap import load_llm as load_llm
