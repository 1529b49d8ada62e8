"""The pipeline. The only place that knows the order of the stages.

history → rewriting → search → reranking → redundancy filter → relevance filter → evidence → selection
→ answer ⟲ feedback

rag.py       `PreciseRAG`: answers
path.py      `RetrievalPath`: from a `Question` to the selection
searching.py the search of one query, further where few documents or texts take all places
stages.py    the stages: what each is, and how it is made
parts.py     single stages for texts that any retriever found
"""

from precise_rag.pipeline.rag import PreciseRAG, check_pipeline

__all__ = ["PreciseRAG", "check_pipeline"]
