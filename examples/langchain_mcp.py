"""A LangChain agent that searches an index through `precise serve`.

    precise index examples/handbook --out my-index
    OPENAI_API_KEY=… python examples/langchain_mcp.py my-index "When does the last ferry leave?"

It needs the extra `mcp`, `langchain` and `langchain-openai`.
"""

import asyncio
import sys
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def load_tools(client: Client) -> list[BaseTool]:
    """The tools of the server: search, read, collections and prune."""

    def load(tool: Any) -> BaseTool:
        async def call(**given: Any) -> str:
            result = await client.call_tool(tool.name, given)
            return "\n".join(part.text for part in result.content)

        return StructuredTool.from_function(
            coroutine=call, name=tool.name, description=tool.description, args_schema=tool.input_schema
        )

    return [load(tool) for tool in (await client.list_tools()).tools]


async def main(index: str, question: str) -> None:
    from langchain.agents import create_agent

    server = StdioServerParameters(command=sys.executable, args=["-m", "precise_rag", "serve", index])
    async with Client(stdio_client(server)) as client:
        agent = create_agent("openai:gpt-4o-mini", await load_tools(client))
        state = await agent.ainvoke({"messages": [{"role": "user", "content": question}]})
        print(state["messages"][-1].content)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
