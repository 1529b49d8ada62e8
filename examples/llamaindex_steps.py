"""A stock LlamaIndex application, improved in three steps of one line each.

    python examples/llamaindex_steps.py

For each step it prints how many tokens a question sends to the model, and for how many questions the answer
is among them. This needs no key. With OPENAI_API_KEY set and `llama-index-llms-openai` installed, gpt-4o-mini
also answers. The documents are pages of the Python language reference, which come with Python.
"""

import os
from collections.abc import Iterator
from pydoc_data.topics import topics

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.node_parser import NodeParser, SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.utils import get_tokenizer

from llamaindex_precise import (
    EvidencePostprocessor,
    PreciseEmbedding,
    PreciseRetriever,
    SemanticSegmentationNodeParser,
)

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


def steps(documents: list[Document], llm: LLM) -> Iterator[tuple[str, BaseQueryEngine]]:
    embed_model = PreciseEmbedding()

    def index(parser: NodeParser) -> VectorStoreIndex:
        return VectorStoreIndex.from_documents(documents, transformations=[parser], embed_model=embed_model)

    yield "stock: fixed chunks, top 2", index(SentenceSplitter()).as_query_engine(llm=llm)

    ours = index(SemanticSegmentationNodeParser(embed_model=embed_model))
    yield "1 chunks end with the topic", ours.as_query_engine(llm=llm)

    evidence = [EvidencePostprocessor()]
    engine = ours.as_query_engine(llm=llm, similarity_top_k=5, node_postprocessors=evidence)
    yield "2 only the sentences that answer", engine

    retriever = PreciseRetriever.from_documents(documents, embed_model)
    yield "3 searched by sentence", RetrieverQueryEngine.from_args(retriever, llm=llm)


def measure(engine: BaseQueryEngine) -> tuple[float, int]:
    """The mean tokens of context for a question, and how many contexts hold the answer."""
    contexts = ["\n\n".join(n.node.get_content() for n in engine.retrieve(QueryBundle(q))) for q in QUESTIONS]
    answered = [words in " ".join(c.split()) for c, words in zip(contexts, QUESTIONS.values(), strict=True)]
    return sum(len(get_tokenizer()(context)) for context in contexts) / len(contexts), sum(answered)


def main(llm: LLM | None = None) -> None:
    documents = [Document(text=topics[page], doc_id=page) for page in PAGES]
    print(f"{'':34}{'tokens':>8}{'answers':>10}")
    for name, engine in steps(documents, llm or MockLLM()):
        tokens, answered = measure(engine)
        print(f"{name:34}{tokens:8.0f}{answered:>6} of {len(QUESTIONS)}")
        if llm is not None:
            print("    ", engine.query(next(iter(QUESTIONS))))


if __name__ == "__main__":
    if "OPENAI_API_KEY" in os.environ:
        from llama_index.llms.openai import OpenAI

        main(OpenAI(model="gpt-4o-mini"))
    else:
        main()
