"""A small collection with questions, and pipelines to compare on it."""

from precise_rag.evaluation import Dataset, Evidence, Question
from precise_rag.types import Document

TOPICS = ("mill", "baker", "ferry", "school", "orchard", "smithy", "chapel", "market")
PLAN = """
baseline = "whole documents"

[pipelines."whole documents"]
split = { name = "langchain-recursive", chunk_size = 500 }

[pipelines.sentences]
split = { name = "sentences" }
search = "hybrid"

[pipelines.ours]
split = { name = "sentences" }
search = "hybrid"
rerank = "packaged"
redundancy = {}
select = { min_k = 2 }
top_k = 8
"""


def story(topic: str) -> Document:
    filler = " ".join(f"Much else is told about house number {n} of the village." for n in range(6))
    return Document(topic, f"{filler}\n\nThe {topic} was built by {topic.title()}son in <1802>. {filler}")


def dataset() -> Dataset:
    documents = tuple(map(story, TOPICS))
    questions = []
    for document in documents:
        start = document.text.index("The ", 40)
        evidence = (Evidence(document.id, start, document.text.index(">.") + 2),)
        questions.append(
            Question(
                document.id, f"Who built the {document.id}?", evidence, (f"{document.id}son",), document.id
            )
        )
    return Dataset("village", documents, tuple(questions))
