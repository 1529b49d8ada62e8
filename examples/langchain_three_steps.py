"""A stock LangChain application over a folder, improved in three steps of one line each.

    python examples/langchain_three_steps.py

For each step it prints how many tokens a question sends to the model, and which share of the evidence
is among them. This needs no key. With OPENAI_API_KEY set and `langchain-openai` installed, gpt-4o-mini
also answers a question at each step. The folder, `examples/handbook`, is the handbook of a ferry line,
with twelve questions and the sentences that answer them.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter, TextSplitter

from langchain_precise import PreciseEmbeddings, SemanticSegmentationTextSplitter
from langchain_precise.papers import GradientSelectionCompressor, HybridRetriever
from precise_rag.tokens import estimate_tokens

FOLDER = Path(__file__).parent / "handbook"
PROMPT = ChatPromptTemplate.from_template(
    "Answer from this context only.\n\n{context}\n\nQuestion: {question}"
)


def read_folder(folder: Path) -> list[Document]:
    return [Document(file.read_text("utf-8"), id=file.stem) for file in sorted(folder.glob("*.md"))]


def vector_store(pieces: list[Document], embeddings: Embeddings, k: int) -> Runnable:
    return InMemoryVectorStore.from_documents(pieces, embeddings).as_retriever(search_kwargs={"k": k})


def steps(documents: list[Document], embeddings: Embeddings) -> Iterator[tuple[str, Runnable]]:
    splitter: TextSplitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    yield "stock: fixed chunks, top 4", vector_store(splitter.split_documents(documents), embeddings, k=4)

    splitter = SemanticSegmentationTextSplitter(chunk_size=1000)
    yield "1 chunks end with the topic", vector_store(splitter.split_documents(documents), embeddings, k=4)

    retriever = HybridRetriever.from_documents(documents, embeddings, k=6)
    yield "2 words and meaning, by sentence", retriever

    retriever = with_query(retriever) | GradientSelectionCompressor(min_k=1)
    yield "3 as many as the scores say", retriever


def with_query(retriever: Runnable) -> Runnable:
    return RunnableParallel(query=RunnablePassthrough(), documents=retriever)


def join(documents: Sequence[Document]) -> str:
    return "\n\n".join(document.page_content.strip() for document in documents)


def measure(retriever: Runnable, questions: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the mean tokens of context per question, and the share of evidence sentences in it."""
    contexts = (retriever | join).batch([question["question"] for question in questions])
    found = [
        quote in context
        for context, question in zip(contexts, questions, strict=True)
        for quote in question["evidence"]
    ]
    return sum(map(estimate_tokens, contexts)) / len(contexts), sum(found) / len(found)


def main(embeddings: Embeddings | None = None, llm: Runnable | None = None) -> None:
    documents = read_folder(FOLDER)
    questions = json.loads((FOLDER.parent / "questions.json").read_text("utf-8"))
    print(f"{'':34}{'tokens':>8}{'evidence':>10}")
    for name, retriever in steps(documents, embeddings or PreciseEmbeddings()):
        tokens, recall = measure(retriever, questions)
        print(f"{name:34}{tokens:8.0f}{recall:10.0%}")
        if llm is not None:
            chain = {"context": retriever | join, "question": RunnablePassthrough()} | PROMPT | llm
            print("    ", (chain | StrOutputParser()).invoke(questions[0]["question"]))


def chat_model() -> Runnable | None:
    if "OPENAI_API_KEY" not in os.environ:
        return None
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-4o-mini")


if __name__ == "__main__":
    main(llm=chat_model())
