"""An application over Qdrant with one argument added: the number of chunks follows the question.

    pip install llama-index-vector-stores-qdrant
    python examples/llamaindex_qdrant.py "How long are lost keys kept?"

It needs no server (Qdrant runs in memory) and no key. It prints each node that Qdrant found, with its
score, whether it was kept, and why. With OPENAI_API_KEY set and `llama-index-llms-openai` installed,
gpt-4o-mini answers. The documents are in `examples/handbook`.
"""

import os
import sys
from pathlib import Path

from llama_index.core import SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM, MockLLM
from llama_index.vector_stores.qdrant import QdrantVectorStore
from qdrant_client import QdrantClient

from llamaindex_precise import PreciseEmbedding
from llamaindex_precise.papers import GradientSelectionPostprocessor

FOLDER = Path(__file__).parent / "handbook"
SELECTION = GradientSelectionPostprocessor(min_k=1, min_score=0.15)


def build_index(client: QdrantClient, embed_model: BaseEmbedding) -> VectorStoreIndex:
    documents = SimpleDirectoryReader(str(FOLDER), required_exts=[".md"]).load_data()
    storage = StorageContext.from_defaults(vector_store=QdrantVectorStore("handbook", client=client))
    return VectorStoreIndex.from_documents(documents, storage_context=storage, embed_model=embed_model)


def explain(index: VectorStoreIndex, question: str) -> None:
    found = index.as_retriever(similarity_top_k=10).retrieve(question)
    for decision in SELECTION.select(found, question).decisions:
        mark = "kept   " if decision.kept else "dropped"
        first_line = decision.candidate.text.strip().splitlines()[-1][:60]
        print(f"{mark} {decision.candidate.score:.3f}  {first_line:60}  {decision.reason}")


def main(
    question: str = "How long are lost keys kept?",
    embed_model: BaseEmbedding | None = None,
    llm: LLM | None = None,
) -> None:
    client = QdrantClient(":memory:")
    index = build_index(client, embed_model or PreciseEmbedding())
    explain(index, question)
    engine = index.as_query_engine(
        llm=llm or MockLLM(),  # without a key: prints the prompt
        similarity_top_k=10,
        node_postprocessors=[SELECTION],
    )
    print(engine.query(question))
    client.close()


def chat_model() -> LLM | None:
    if "OPENAI_API_KEY" not in os.environ:
        return None
    from llama_index.llms.openai import OpenAI

    return OpenAI(model="gpt-4o-mini")


if __name__ == "__main__":
    main(*sys.argv[1:2], llm=chat_model())
