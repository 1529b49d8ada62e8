"""Texts for the tests of segmentation."""

from hypothesis import strategies as st

from support.documents import read_cases

TWO_TOPICS = read_cases("sentences.json", "two topics")
"""Seven sentences; the topic changes after the fourth."""
TOPICS = read_cases("sentences.json", "topics")
"""Sentences of four topics, separated by bars."""
TOWN = read_cases("sentences.json", "of a town")
"""Three paragraphs of a town, of which two end alike."""
any_text = st.lists(
    st.one_of(
        st.sampled_from([*TWO_TOPICS.split(". "), "\n\n", ". ", "- ", "你好。", "\ud800", "x" * 1200]),
        st.text(),
    ),
    max_size=40,
).map(" ".join)
"""Texts of sentences, blank lines, long words and arbitrary characters."""
