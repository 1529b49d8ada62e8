"""What a notebook shows of a trace and a selection."""

from html import unescape

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
