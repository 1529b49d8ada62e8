"""A stock LlamaIndex application with one line changed: chunks end where the topic does.

    python examples/llamaindex_quickstart.py "When is __exit__ called?"

Without a key it prints the prompt that a model would read. With OPENAI_API_KEY set and
`llama-index-llms-openai` installed, gpt-4o-mini answers. The documents are pages of the Python
language reference, which come with Python.
"""

import os
import sys
from pydoc_data.topics import topics

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.node_parser import NodeParser

from llamaindex_precise import PreciseEmbedding, SemanticSegmentationNodeParser

PAGES = ("assert", "lambda", "raise", "try", "while", "with")


def ask(question: str, parser: NodeParser, embed_model: BaseEmbedding, llm: LLM) -> RESPONSE_TYPE:
    documents = [Document(text=topics[page], doc_id=page) for page in PAGES]
    index = VectorStoreIndex.from_documents(documents, transformations=[parser], embed_model=embed_model)
    return index.as_query_engine(llm=llm, similarity_top_k=4).query(question)


def chat_model() -> LLM:
    if "OPENAI_API_KEY" not in os.environ:
        return MockLLM()  # prints the prompt
    from llama_index.llms.openai import OpenAI

    return OpenAI(model="gpt-4o-mini")


def main(question: str = "When is __exit__ called?") -> None:
    # parser = SentenceSplitter(chunk_size=200, chunk_overlap=20)
    parser = SemanticSegmentationNodeParser(chunk_size=200)
    response = ask(question, parser, PreciseEmbedding(), chat_model())
    print(response)
    for source in response.source_nodes:
        node = source.node
        print(f"{source.score:.3f}  {node.ref_doc_id}[{node.start_char_idx}:{node.end_char_idx}]")


if __name__ == "__main__":
    main(*sys.argv[1:2])
