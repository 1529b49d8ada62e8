"""Texts for the tests of segmentation."""

from hypothesis import strategies as st

from support.documents import read_cases

TWO_TOPICS = (
    "Yeast turns sugar into gas. The gas makes the dough rise. A warm kitchen speeds it up. "
    "However, the bread must rest before it is baked. "
    "In 1969, two astronauts walked on the Moon. They collected rocks for six hours. "
    "Their capsule landed in the Pacific Ocean four days later."
)
"""Seven sentences; the topic changes after the fourth."""
TOPICS = read_cases("sentences.json", "topics")
"""Sentences of four topics, separated by bars."""
TOWN = (
    "Rye bread is baked twice. The crust is dark. It keeps for a month.\n\n"
    "The town clock was built in 1911. It runs on a weight. It keeps for a month.\n\n"
    "In January the harbour freezes. Ice breakers keep a channel open."
)
"""Three paragraphs of a town, of which two end alike."""
any_text = st.lists(
    st.one_of(
        st.sampled_from([*TWO_TOPICS.split(". "), "\n\n", ". ", "- ", "你好。", "\ud800", "x" * 1200]),
        st.text(),
    ),
    max_size=40,
).map(" ".join)
"""Texts of sentences, blank lines, long words and arbitrary characters."""
