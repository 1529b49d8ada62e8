from langchain_core.documents import Document

from langchain_precise import EvidenceCompressor

TEXT = (
    "The harbour has three piers. Ilse Brandt is the captain of the ferry to Velm. "
    "She has sailed since 1998. "
    "The bakery opens at six. Rye bread is sold on Fridays."
)
FISH = "Herring is cheap in autumn. The market closes at noon."
QUESTION = "Who is the captain of the ferry?"


def documents() -> list[Document]:
    return [
        Document(FISH, metadata={"source": "fish.txt"}),
        Document(TEXT, metadata={"source": "harbour.txt", "start_index": 100}),
    ]


async def test_as_a_runnable_also_without_blocking():
    runnable = EvidenceCompressor(reranker="packaged").as_runnable()
    given = {"query": QUESTION, "documents": documents()}
    found = runnable.invoke(given)
    best = next(d for d in found if "Ilse Brandt" in d.page_content)
    first = best.metadata["start_index"] - 100
    assert TEXT[first : first + len(best.page_content)] == best.page_content
    assert [d.page_content for d in await runnable.ainvoke(given)] == [d.page_content for d in found]
