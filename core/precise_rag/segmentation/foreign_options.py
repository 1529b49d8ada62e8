"""Options of other splitters that these segmenters do not have, and why."""

from collections.abc import Iterable

from precise_rag.errors import InputError

_NO_SEPARATORS = "cuts are found between sentences, and not at separators"
_NO_BREAKPOINTS = "cuts are found by a trained model or a fixed cosine; set threshold="
_OWN_SENTENCES = 'sentences are found by the sentence splitter; set sentence_splitter= to one of "auto", …'
_WHOLE_CONTEXT = "the context of a sentence is its passage; set passages="
_REASONS = {
    "separator": _NO_SEPARATORS,
    "separators": _NO_SEPARATORS,
    "keep_separator": _NO_SEPARATORS,
    "is_separator_regex": _NO_SEPARATORS,
    "paragraph_separator": 'blank lines end paragraphs; set paragraphs="hard" to cut at each',
    "secondary_chunking_regex": _NO_SEPARATORS,
    "chunking_tokenizer_fn": _OWN_SENTENCES,
    "sentence_split_regex": _OWN_SENTENCES,
    "buffer_size": _NO_BREAKPOINTS,
    "breakpoint_percentile_threshold": _NO_BREAKPOINTS,
    "breakpoint_threshold_type": _NO_BREAKPOINTS,
    "breakpoint_threshold_amount": _NO_BREAKPOINTS,
    "number_of_chunks": "the text decides; set max_tokens= for smaller chunks",
    "min_chunk_size": "set min_tokens=, in tokens",
    "window_size": _WHOLE_CONTEXT,
}


def check_foreign_options(names: Iterable[str], chunk_overlap: object = 0) -> None:
    """Raise InputError, with the reason, for an option that only other splitters have.

    names: of the options given. chunk_overlap: must be 0 or None.
    """
    if chunk_overlap not in (0, None):
        raise InputError(
            f"chunk_overlap must be 0, got {chunk_overlap!r}: these pieces do not overlap; to search "
            "sentences together with their surroundings, use SentenceContextRetriever"
        )
    for name in names:
        if name in _REASONS:
            raise InputError(f"{name} is not an option here: {_REASONS[name]}")
