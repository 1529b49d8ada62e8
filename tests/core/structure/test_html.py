"""HTML."""

from precise_rag.structure import read_structure
from support.structures import kinds

HTML = (
    "<html><head><style>h1 {x: y}</style></head><body><h1>Eels &amp; lamps</h1><p>In May.</p>"
    "<ul><li>oak<li>wicker <ol><li>new</li></ol></li></ul><h2>Code</h2><p>As follows:</p><pre>a\n\nb</pre>"
    "<table><tr><td>1</td></tr><tr><td>2</td></tr></table><blockquote>Quoted</blockquote>End</body></html>"
)


def test_html() -> None:
    found = read_structure(HTML)
    assert found.format == "html"
    assert kinds(found) == [
        *("heading1", "paragraph", "item1", "item1", "item2", "heading2", "paragraph", "code", "table"),
        *("quote", "paragraph"),
    ]
    assert found.heading_path(HTML.index("<pre>")) == ("Eels & lamps", "Code")


def test_closing_tags_belong_to_the_block_before() -> None:
    text = "<div><ul>\n<li>oak</li>\n</ul>\n</div>\n\n<div><p>End</p></div>\n"
    found = read_structure(text, "html")
    assert [text[block.start : block.end] for block in found.blocks] == [
        "<div><ul>\n<li>oak</li>\n</ul>\n</div>\n\n",
        "<div><p>End</p></div>\n",
    ]
