"""A stock LlamaIndex application over a folder, improved in three steps of one line each.

    python examples/llamaindex_three_steps.py

For each step it prints how many tokens a question sends to the model, and which share of the evidence
is among them. This needs no key. With OPENAI_API_KEY set and `llama-index-llms-openai` installed, gpt-4o-mini
also answers a question at each step. The folder, `examples/handbook`, is the handbook of a ferry line,
with twelve questions and the sentences that answer them.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llama_index.core import Document, SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.utils import get_tokenizer

from llamaindex_precise import PreciseEmbedding, SemanticSegmentationNodeParser
from llamaindex_precise.papers import GradientSelectionPostprocessor, HybridRetriever

FOLDER = Path(__file__).parent / "handbook"


def read_folder(folder: Path) -> list[Document]:
    return SimpleDirectoryReader(str(folder), required_exts=[".md"]).load_data()


def steps(
    documents: list[Document], embed_model: BaseEmbedding, llm: LLM
) -> Iterator[tuple[str, RetrieverQueryEngine]]:
    parser = SentenceSplitter(chunk_size=256, chunk_overlap=32)
    index = VectorStoreIndex.from_documents(documents, transformations=[parser], embed_model=embed_model)
    yield "stock: fixed chunks, top 4", index.as_query_engine(llm=llm, similarity_top_k=4)

    parser = SemanticSegmentationNodeParser(chunk_size=256)
    index = VectorStoreIndex.from_documents(documents, transformations=[parser], embed_model=embed_model)
    yield "1 chunks end with the topic", index.as_query_engine(llm=llm, similarity_top_k=4)

    retriever = HybridRetriever.from_documents(documents, embed_model, similarity_top_k=6)
    yield "2 words and meaning at once", RetrieverQueryEngine.from_args(retriever, llm=llm)

    selection = GradientSelectionPostprocessor(min_k=1)
    engine = RetrieverQueryEngine.from_args(retriever, llm=llm, node_postprocessors=[selection])
    yield "3 as many as the scores say", engine


def measure(engine: RetrieverQueryEngine, questions: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the mean tokens of context per question, and the share of evidence sentences in it."""
    tokenize = get_tokenizer()
    n_tokens, found = 0, []
    for question in questions:
        nodes = engine.retrieve(QueryBundle(question["question"]))
        context = "\n\n".join(item.node.get_content() for item in nodes)
        n_tokens += len(tokenize(context))
        found += [quote in context for quote in question["evidence"]]
    return n_tokens / len(questions), sum(found) / len(found)


def main(embed_model: BaseEmbedding | None = None, llm: LLM | None = None) -> None:
    documents = read_folder(FOLDER)
    questions = json.loads((FOLDER.parent / "questions.json").read_text("utf-8"))
    print(f"{'':34}{'tokens':>8}{'evidence':>10}")
    for name, engine in steps(documents, embed_model or PreciseEmbedding(), llm or MockLLM()):
        tokens, recall = measure(engine, questions)
        print(f"{name:34}{tokens:8.0f}{recall:10.0%}")
        if llm is not None:
            print("    ", engine.query(questions[0]["question"]))


def chat_model() -> LLM | None:
    if "OPENAI_API_KEY" not in os.environ:
        return None
    from llama_index.llms.openai import OpenAI

    return OpenAI(model="gpt-4o-mini")


if __name__ == "__main__":
    main(llm=chat_model())
