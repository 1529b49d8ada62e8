"""A question with its candidates, and a client of a server that misbehaves."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from precise_rag.llm import OpenAIChat
from precise_rag.types import Candidate, Message
from support.chat_server import ChatServer
from support.velm import shown_texts

QUESTION = "Who kept the light?"
PROMPT = (Message("user", QUESTION),)
ACCEPTED = '{"reason": "so", "score": 9, "adjustment": 0}'
TEXTS = ["The light was kept by Ada.", "Bo kept it later.", "Cy kept the boats.", "Di painted the door."]
CANDIDATES = [Candidate(f"d{n}", 0, len(t), t, 0.9 - n / 10, "probability") for n, t in enumerate(TEXTS)]
MANY = [Candidate(f"c{n}", 0, 8, f"Chunk {n:02}", 1 - n / 100, "probability") for n in range(10)]


@contextmanager
def client(script: Any, **options: Any) -> Iterator[tuple[OpenAIChat, ChatServer]]:
    with ChatServer(script) as server:
        llm = OpenAIChat("m", base_url=server.url, **{"timeout": 5.0, "max_retries": 0, **options})
        try:
            yield llm, server
        finally:
            llm.close()


def scores(messages: Sequence[Message], refused: Callable[[str], Exception | None]) -> str | Exception:
    if error := refused(messages[1].content):
        return error
    item = {"base": 0.7, "reflection": 0.7, "critic": 0.7}
    return json.dumps({"scores": [{"id": key, **item} for key in shown_texts(messages)]})


async def completed(llm: OpenAIChat) -> None:
    """Ask without blocking, and close."""
    try:
        await llm.acomplete(PROMPT)
    finally:
        await llm.aclose()


async def drained(stream: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in stream]
