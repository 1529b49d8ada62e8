"""The pipeline. The only place that knows the order of the stages.

history → rewriting → search → reranking → redundancy filter → relevance filter → evidence → selection
→ answer ⟲ feedback

rag.py       `PreciseRAG`
stages.py    the stages between search and selection
estimate.py  what a question will cost
"""

from precise_rag.llm.rehearsal import Estimate as Estimate
from precise_rag.pipeline.rag import PreciseRAG as PreciseRAG
