"""A stock LangChain application, improved in three steps of one line each.

    python examples/langchain_steps.py

For each step it prints how many tokens a question sends to the model, and for how many questions the answer
is among them. This needs no key. With OPENAI_API_KEY set and `langchain-openai` installed, gpt-4o-mini also
answers. The documents are pages of the Python language reference, which come with Python.
"""

import os
from collections.abc import Iterator, Sequence
from pydoc_data.topics import topics
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter, TextSplitter

from langchain_precise import (
    EvidenceCompressor,
    PreciseEmbeddings,
    PreciseRetriever,
    SemanticSegmentationTextSplitter,
)
from precise_rag.tokens import estimate_tokens

PAGES = ("assert", "class", "for", "import", "lambda", "raise", "try", "while", "with", "yield")
QUESTIONS = {
    "When is __exit__ called?": '"__exit__()" method is invoked.',
    "When is a saved exception discarded?": 'clause executes a "return", "break" or "continue" statement',
    "What is raised if there is no active exception?": '"RuntimeError" exception is raised',
    "When is no code emitted for an assert statement?": "when optimization is requested at compile time",
    "What does a lambda expression yield?": "yields a function object",
    "What if import finds no module?": '"ModuleNotFoundError"',
    "What does continue do in a while loop?": "skips the rest of the suite",
}
"""Questions, and the words of the pages that answer them."""
PROMPT = ChatPromptTemplate.from_template(
    "Answer from this context only.\n\n{context}\n\nQuestion: {question}"
)


def steps(documents: list[Document]) -> Iterator[tuple[str, Runnable[str, list[Document]]]]:
    embeddings = PreciseEmbeddings()

    def store(splitter: TextSplitter, embeddings: Embeddings) -> InMemoryVectorStore:
        return InMemoryVectorStore.from_documents(splitter.split_documents(documents), embeddings)

    yield "stock: fixed chunks, top 4", store(RecursiveCharacterTextSplitter(), embeddings).as_retriever()

    splitter = SemanticSegmentationTextSplitter(embeddings=embeddings)
    ours = store(splitter, splitter.embeddings)
    yield "1 chunks end with the topic", ours.as_retriever()

    found = ours.as_retriever(search_kwargs={"k": 10})
    with_query = RunnableParallel(query=RunnablePassthrough(), documents=found)
    yield "2 only the sentences that answer", with_query | EvidenceCompressor()

    yield "3 searched by sentence", PreciseRetriever.from_documents(documents, embeddings)


def join(documents: Sequence[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


def measure(retriever: Runnable[str, list[Document]]) -> tuple[float, int]:
    """The mean tokens of context for a question, and how many contexts hold the answer."""
    contexts = (retriever | join).batch(list(QUESTIONS))
    answered = [words in " ".join(c.split()) for c, words in zip(contexts, QUESTIONS.values(), strict=True)]
    return sum(map(estimate_tokens, contexts)) / len(contexts), sum(answered)


def main(llm: Runnable[Any, Any] | None = None) -> None:
    documents = [Document(topics[page], id=page) for page in PAGES]
    print(f"{'':34}{'tokens':>8}{'answers':>10}")
    for name, retriever in steps(documents):
        tokens, answered = measure(retriever)
        print(f"{name:34}{tokens:8.0f}{answered:>6} of {len(QUESTIONS)}")
        if llm is not None:
            chain = {"context": retriever | join, "question": RunnablePassthrough()} | PROMPT | llm
            print("    ", (chain | StrOutputParser()).invoke(next(iter(QUESTIONS))))


if __name__ == "__main__":
    if "OPENAI_API_KEY" in os.environ:
        from langchain_openai import ChatOpenAI

        main(ChatOpenAI(model="gpt-4o-mini"))
    else:
        main()
