import pytest

from benchmarks.adoption import __main__ as adoption
from benchmarks.adoption.app import RememberingReranker, RightModel
from precise_rag.encoders import load_encoder
from precise_rag.evaluation.datasets import Evidence, Question
from precise_rag.index import HybridIndex
from precise_rag.types import Document

TEXT = (
    "The mill grinds rye for three villages. Its wheel was carved by Runa Stell in 1902. "
    "Oak from the north slope was used. The miller sleeps by day. A cat guards the flour. "
)


@pytest.mark.parametrize("framework", adoption.FRAMEWORKS)
def test_every_line_sends_the_evidence_and_no_more_than_the_stock_app(framework):
    documents = [
        Document("mill", TEXT),
        Document("quay", "The quay is long. Boats moor at the quay."),
    ]
    start = TEXT.index("Its wheel")
    span = Evidence("mill", start, TEXT.index(" Oak"))
    question = Question(id="q", text="Who carved the wheel of the mill?", evidence=(span,))
    encoder, model = load_encoder(), RightModel()
    app = framework(documents, HybridIndex.build(documents, encoder), encoder, RememberingReranker(), model)
    texts = {document.id: document.text for document in documents}
    rows = list(adoption.measure(app, [question], texts, model, encoder.count_tokens))
    stock = max(row["tokens"][0] for row in rows if "nearest" in row)
    for row in rows:
        if not row.get("stock"):
            assert row["evidence"] == [pytest.approx(1.0)]
            assert row["tokens"][0] <= stock + 30  # contexts repeat sentences
    assert [row["asked"] > 100 for row in rows if "asked" in row] == [True, True]
    found = adoption.summary([{"set": "toy", **row} for row in rows])
    assert len(adoption.shown(found).splitlines()) == len(rows) + 2
    assert len(adoption.differences(rows).splitlines()) == sum("line" in row for row in rows) + 2


def test_the_tokens_of_the_stock_app_are_interpolated_and_never_made_up():
    nearest = [
        {"evidence": 0.5, "tokens": 100},
        {"evidence": 0.4, "tokens": 200},
        {"evidence": 0.9, "tokens": 300},
    ]
    assert adoption.tokens_for(0.25, nearest) == pytest.approx(50)
    assert adoption.tokens_for(0.7, nearest) == pytest.approx(200)
    assert adoption.tokens_for(0.95, nearest) is None
    more = [*nearest, {"evidence": 0.9, "tokens": 900}]
    assert adoption.tokens_for(0.9, more) == pytest.approx(300)  # the fewest that reach it
