"""Every part that takes a reranker takes any, and only its order counts; over stock chunks, too."""

from pydoc_data.topics import topics

import pytest

from precise_rag import PreciseRAG
from precise_rag.index import HybridIndex
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Document
from support.frameworks import each_framework
from support.rerankers import BROUGHT, QUESTION, logit
from support.velm import verdict

INDEX = HybridIndex.build(
    [Document(page, topics[page]) for page in ("try", "while", "with", "for")], HashEncoder()
)
CHUNKS = {
    f"{page}{n}": text
    for page in ("try", "with")
    for n, text in enumerate(topics[page].split("\n\n"))
    if len(text) > 80
}


def texts(framework, pieces):
    return [framework.text(piece) for piece in pieces]


def used(framework, part, reranker):
    """The texts that a part with the reranker returns."""
    if part == "PreciseRetriever":
        over = framework.retriever.from_index(INDEX, reranker=reranker)
        return texts(framework, framework.find(over, QUESTION))
    if part == "loop":
        llm = ScriptedLLM(["When no exception [1].", verdict(10)])
        loop = framework.answering(PreciseRAG(INDEX, llm, reranker=reranker))
        return texts(framework, framework.answer(loop, QUESTION).sources)
    chunks = [framework.piece(text, name, 0.5) for name, text in CHUNKS.items()]
    return texts(framework, framework.cut(framework.part(part, reranker=reranker), chunks, QUESTION))


@each_framework
@pytest.mark.parametrize("part", ["PreciseRetriever", "loop", "Evidence", "GradientSelection"])
def test_rerankers_with_one_order_give_one_result(framework, part):
    first, *others = (used(framework, part, make()) for make in BROUGHT.values())
    assert first
    assert others == [first] * (len(BROUGHT) - 1)


@each_framework
@pytest.mark.parametrize("make", BROUGHT.values(), ids=BROUGHT)
def test_reranking_alone_is_by_their_order(framework, make):
    found = [logit(QUESTION, text) for text in used(framework, "Rerank", make())]
    assert found == pytest.approx(sorted((logit(QUESTION, text) for text in CHUNKS.values()), reverse=True))


class Listens:
    """A reranker that keeps what it is told about each text: what stands before and after it."""

    name, score_scale, is_calibrated, reads_around = "listens", "probability", True, True

    def __init__(self):
        self.heard = {}

    def score(self, query, candidates):
        self.heard = {c.text: (c.before, c.after) for c in candidates}
        return [0.5] * len(candidates)


@each_framework
@pytest.mark.parametrize("part", ["PreciseRetriever", "loop", "Evidence"])
def test_a_reranker_that_reads_it_is_told_the_text_around_each_sentence(framework, part):
    listens = Listens()
    assert used(framework, part, listens)
    pages = [" ".join(page.split()) for page in topics.values()]
    inside = [text for text, (before, after) in listens.heard.items() if before and after]
    assert len(inside) > 10
    for text in inside[:20]:
        whole = " ".join("".join((listens.heard[text][0], text, listens.heard[text][1])).split())
        assert any(whole in page for page in pages)


QUESTIONS = (
    QUESTION,
    "How is a value formatted with a width?",
    "What does the nonlocal statement do?",
)


@pytest.fixture(scope="module")
def stock():
    """The stock store of a framework over stock chunks of manual pages."""
    made = {}

    def over(framework):
        if framework not in made:
            pages = ("try", "formatstrings", "nonlocal", "with", "typesseq", "compound", "objects")
            made[framework] = framework.stock_chunks({page: topics[page] for page in pages})
        return made[framework]

    return over


@each_framework
@pytest.mark.parametrize("question", QUESTIONS)
def test_evidence_and_answers_send_the_same_and_less_than_stock(framework, stock, question):
    over = framework.stock_retriever(stock(framework), framework.stock_k)
    part = framework.part("Evidence", reranker="packaged")
    cut = texts(framework, framework.cut(part, framework.find(over, question), question))
    loop = framework.loop(over, ScriptedLLM(["So [1].", verdict(10)]), reranker="packaged")
    sent = texts(framework, framework.answer(loop, question).sources)
    assert sorted(sent) == sorted(cut)
    plain = texts(framework, framework.find(stock(framework).as_retriever(), question))
    assert 0 < sum(map(estimate_tokens, cut)) < sum(map(estimate_tokens, plain))


@each_framework
def test_more_sends_more_of_stock_chunks(framework, stock):
    more = verdict(4, 1)
    llm = ScriptedLLM(["Unsure.", more, "Still unsure.", more, "So [1].", verdict(10)])
    over = framework.stock_retriever(stock(framework), framework.stock_k)
    loop = framework.loop(over, llm, reranker="packaged")
    rounds = framework.answer(loop, QUESTION).facts["trace"]["rounds"]
    sizes = [len(one["kept"]) for one in rounds]
    assert [one["step"] for one in rounds] == [0, 1, 2]
    assert sizes[0] < sizes[1] < sizes[2]
