"""A LlamaIndex agent that searches an index through `precise serve`.

    precise index examples/handbook --out my-index
    OPENAI_API_KEY=… python examples/llamaindex_mcp.py my-index "When does the last ferry leave?"

It needs the extra `mcp` and `llama-index-llms-openai`.
"""

import asyncio
import sys
from typing import Any

from llama_index.core.agent import FunctionAgent
from llama_index.core.tools import FunctionTool
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


def load_tools(client: Client) -> list[FunctionTool]:
    """Two tools of the server: search and read."""

    async def call(name: str, **given: Any) -> str:
        result = await client.call_tool(name, given)
        return "\n".join(part.text for part in result.content)

    async def search(question: str) -> str:
        """Find the excerpts that answer a question, each below its document and its place, such as @120."""
        return await call("search", question=question)

    async def read(document: str, place: int) -> str:
        """Read the text around a place that a search returned."""
        return await call("read", document=document, place=place)

    return [FunctionTool.from_defaults(async_fn=function) for function in (search, read)]


async def main(index: str, question: str) -> None:
    from llama_index.llms.openai import OpenAI

    server = StdioServerParameters(command=sys.executable, args=["-m", "precise_rag", "serve", index])
    async with Client(stdio_client(server)) as client:
        agent = FunctionAgent(tools=load_tools(client), llm=OpenAI("gpt-4o-mini"))
        print(await agent.run(question))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
