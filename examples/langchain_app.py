"""A LangChain application with each part of ours where it belongs; type checkers accept it.

    python examples/langchain_app.py

It needs no key: a model that always says the same stands for yours.
"""

from operator import itemgetter

from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_precise import (
    DOCUMENT_PROMPT,
    EvidenceCompressor,
    GradientSelectionCompressor,
    PreciseEmbeddings,
    PreciseRetriever,
    RedundancyCompressor,
    RelevanceFilterCompressor,
    RerankCompressor,
    SelfFeedbackChain,
    SemanticSegmentationTextSplitter,
    SentenceContextTextSplitter,
    ToolResultPruningMiddleware,
    read_facts,
)

DOCUMENTS = [
    Document(
        "# Pump M-7\n\nThe pump stands in the yard.\n\n## Oil\n\nChange the oil every 400 hours.", id="pump"
    ),
    Document("The town clock was built by Ada Brandt in 1911. It runs on a weight.", id="clock"),
]
QUESTION = "How often is the oil of the pump changed?"
PROMPT = ChatPromptTemplate.from_template("Answer from this.\n\n{context}\n\nQuestion: {input}")


def join(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


def stores() -> list[InMemoryVectorStore]:
    """Stores of pieces that end with the topic, and of sentences, with vectors that know their context."""
    pieces = SemanticSegmentationTextSplitter(chunk_size=1_000, embeddings=PreciseEmbeddings())
    sentences = SentenceContextTextSplitter(PreciseEmbeddings(), alpha=0.5)
    plain = SemanticSegmentationTextSplitter(max_tokens=200)
    return [
        InMemoryVectorStore.from_documents(pieces.split_documents(DOCUMENTS), pieces.embeddings),
        InMemoryVectorStore.from_documents(sentences.split_documents(DOCUMENTS), sentences.embeddings),
        InMemoryVectorStore.from_documents(plain.split_documents(DOCUMENTS), PreciseEmbeddings()),
    ]


def chains(store: InMemoryVectorStore, model: BaseChatModel) -> None:
    """Compressors in chains: after a retriever, one after the other, and before a prompt."""
    found = RunnableParallel(query=RunnablePassthrough(), documents=store.as_retriever())
    cut: list[Document] = (found | EvidenceCompressor(max_tokens=500)).invoke(QUESTION)
    print("evidence", read_facts(cut[0])["score"], join(cut))
    reranked = {"query": RunnablePassthrough(), "documents": store.as_retriever()} | RerankCompressor(top_n=3)
    print("reranked", len(reranked.invoke(QUESTION)))
    stages = (
        found.assign(documents=RerankCompressor(top_n=10))
        .assign(documents=RedundancyCompressor(embeddings=PreciseEmbeddings()))
        .assign(documents=RelevanceFilterCompressor(llm=model, max_concurrency=2))
    )
    selected = stages | GradientSelectionCompressor(min_k=2).with_config(tags=["selection"])
    print("selected", [read_facts(document)["reason"] for document in selected.invoke(QUESTION)])
    print("given", EvidenceCompressor().invoke({"query": QUESTION, "documents": DOCUMENTS}))
    answer = {"context": found | EvidenceCompressor() | join, "input": RunnablePassthrough()} | PROMPT | model
    text: str = (answer | StrOutputParser()).invoke(QUESTION)
    print("answer", text)


def retrievers(store: InMemoryVectorStore) -> list[BaseRetriever]:
    """Ours over documents and over a store, and compressors in those of LangChain."""
    ours = PreciseRetriever.from_documents(DOCUMENTS, k=2, search_kwargs={"filter": {"$id": "pump"}})
    over = PreciseRetriever.from_store(store, fetch_k=30, max_tokens=300)
    both = DocumentCompressorPipeline(transformers=[RedundancyCompressor(), RerankCompressor(top_n=3)])
    return [
        ours,
        over,
        EnsembleRetriever(retrievers=[over, store.as_retriever()], weights=[0.5, 0.5]),
        ContextualCompressionRetriever(base_compressor=EvidenceCompressor(), base_retriever=over),
        ContextualCompressionRetriever(base_compressor=both, base_retriever=store.as_retriever()),
    ]


def answers(retriever: BaseRetriever, model: BaseChatModel) -> None:
    """Chains that answer: LangChain's, and ours, which judges what it answers."""
    stuff = create_stuff_documents_chain(model, PROMPT, document_prompt=DOCUMENT_PROMPT)
    print("stock", create_retrieval_chain(retriever, stuff).invoke({"input": QUESTION})["answer"])
    loop = SelfFeedbackChain(retriever, model, max_tokens=400)
    output = loop.invoke({"input": QUESTION, "chat_history": [HumanMessage("I have a pump.")]})
    print("ours", output["answer"], output["score"], join(output["context"]))
    (RunnableParallel(input=RunnablePassthrough()) | loop).invoke(QUESTION)
    (ChatPromptTemplate.from_template("{input}") | loop | itemgetter("answer")).invoke({"input": QUESTION})
    print("streamed", *(piece.get("answer") for piece in loop.stream(QUESTION)))
    SelfFeedbackChain.from_documents(DOCUMENTS, model).batch([QUESTION, QUESTION])


def main() -> None:
    model = FakeListChatModel(responses=["Every 400 hours [1]."])
    stored = stores()
    for store in stored:
        print("stored", join(store.similarity_search(QUESTION, k=1)))
    chains(stored[0], model)
    several = retrievers(stored[0])
    for retriever in several:
        print(type(retriever).__name__, join(retriever.invoke(QUESTION)))
    answers(several[0], model)
    print("middleware", ToolResultPruningMiddleware(max_tokens=500).tools[0].name)


if __name__ == "__main__":
    main()
