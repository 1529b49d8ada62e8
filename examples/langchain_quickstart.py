"""A stock LangChain chain with one line changed: chunks end where the topic does.

    python examples/langchain_quickstart.py "When is __exit__ called?"

Without a key it prints the prompt that a model would read. With OPENAI_API_KEY set and
`langchain-openai` installed, gpt-4o-mini answers. The documents are pages of the Python language
reference, which come with Python.
"""

import os
import sys
from pydoc_data.topics import topics

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import TextSplitter

from langchain_precise import PreciseEmbeddings, SemanticSegmentationTextSplitter

PAGES = ("assert", "lambda", "raise", "try", "while", "with")

PROMPT = ChatPromptTemplate.from_template(
    "Answer from this context only.\n\n{context}\n\nQuestion: {question}"
)


def build_chain(splitter: TextSplitter, embeddings: Embeddings, llm: Runnable) -> Runnable:
    documents = [Document(topics[page], id=page) for page in PAGES]
    store = InMemoryVectorStore(embeddings)
    store.add_documents(splitter.split_documents(documents))
    context = store.as_retriever(search_kwargs={"k": 4}) | join
    return {"context": context, "question": RunnablePassthrough()} | PROMPT | llm | StrOutputParser()


def join(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content.strip() for document in documents)


def chat_model() -> Runnable:
    if "OPENAI_API_KEY" not in os.environ:
        return RunnableLambda(lambda prompt: f"[no key: a model would read this]\n{prompt.to_string()}")
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-4o-mini")


def main(question: str = "When is __exit__ called?") -> None:
    # splitter = RecursiveCharacterTextSplitter(chunk_size=800, chunk_overlap=100)
    splitter = SemanticSegmentationTextSplitter(chunk_size=800)
    print(build_chain(splitter, PreciseEmbeddings(), chat_model()).invoke(question))


if __name__ == "__main__":
    main(*sys.argv[1:2])
