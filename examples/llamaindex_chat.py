"""A streaming chat over a book, whose answers are judged before they are shown.

    OPENAI_API_KEY=… python examples/llamaindex_chat.py

It needs `llama-index-llms-openai`. The book is the Python language reference that comes with Python.
After each answer, `trace.html` shows what was found, what the selection kept and why, and each draft
with its judgement, tokens and cost. An empty line ends the chat.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from pydoc_data.topics import topics

from llama_index.core import Document
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM

from llamaindex_precise import SelfFeedbackChatEngine, SelfFeedbackQueryEngine
from precise_rag.viz.trace_page import trace_page

CHAPTERS = ("assert", "async", "class", "compound", "function", "global", "import", "raise", "try", "with")


def build_chat(llm: LLM, embed_model: BaseEmbedding | None = None) -> SelfFeedbackChatEngine:
    book = [Document(text=topics[chapter], doc_id=chapter) for chapter in CHAPTERS if chapter in topics]
    return SelfFeedbackChatEngine.from_engine(SelfFeedbackQueryEngine.from_documents(book, llm, embed_model))


def converse(chat: SelfFeedbackChatEngine, questions: Iterable[str], page: Path) -> None:
    for question in questions:
        reply = chat.stream_chat(question)
        for piece in reply.response_gen:
            print(piece, end="", flush=True)
        (output,) = reply.sources
        facts = output.raw_output.metadata["precise"]
        page.write_text(trace_page(facts["trace"]), encoding="utf-8")
        chapters = ", ".join(sorted({source.node.ref_doc_id for source in reply.source_nodes}))
        print(f"\n    [judged {facts['score']} of 10, from: {chapters}; see {page}]")


def ask() -> Iterator[str]:
    while question := input("\n> ").strip():
        yield question


if __name__ == "__main__":
    if "OPENAI_API_KEY" not in os.environ:
        raise SystemExit("This chat needs a model: set OPENAI_API_KEY.")
    from llama_index.llms.openai import OpenAI

    converse(build_chat(OpenAI(model="gpt-4o-mini")), ask(), Path("trace.html"))
