"""What a notebook shows of a trace and a selection."""

from html import unescape

from precise_rag.segmentation import Segmenter
from precise_rag.types import Candidate, Selection
from support.traces import full_trace


def test_a_trace_is_a_frame_that_keeps_its_style_and_runs_nothing():
    trace = full_trace()
    shown = trace._repr_html_()
    assert shown.startswith("<iframe sandbox srcdoc=")
    assert shown.count("<style") == 0
    assert trace.to_html() in unescape(shown)


def test_a_selection_is_a_table_in_the_style_of_the_notebook():
    piece = Candidate("a<b", 0, 9, "x <b> & y", 0.5, "probability")
    shown = Selection.of([(piece, True, "first"), (piece, False, "below 0.6")])._repr_html_()
    assert "x &lt;b&gt; &amp; y" in shown
    assert "a&lt;b" in shown
    assert (shown.count("<tr>"), "<style" in shown) == (3, False)


def test_a_segmentation_is_a_table_in_the_style_of_the_notebook():
    text = "The <lamp> is lit at dusk. Ilse keeps it.\n\nOtters sleep by the river. It floods in March."
    found = Segmenter.from_pretrained("small", max_tokens=24).explain(text)
    shown = found._repr_html_()
    assert len(found.cuts) > 0
    assert shown.count("<tr>") == 2 + len(found.cuts)
    assert "The &lt;lamp&gt; is lit at dusk." in shown
    assert all(f"<small>{score:.2f}</small>" in shown for score in found.scores)
    assert all(f">{reason}</td>" in shown for reason in found.reasons)
    assert "<style" not in shown
    assert Segmenter.from_pretrained("small").explain("")._repr_html_().count("<tr>") == 1
