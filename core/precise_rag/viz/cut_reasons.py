"""Why a document was cut, in words."""

from collections.abc import Mapping

from precise_rag.segmentation.options import CutReason

REASONS: Mapping[CutReason, str] = {
    "heading": "a heading begins",
    "topic": "the topic changes",
    "paragraph": "a paragraph ends, and the chunk would become too long",
    "length": "the best place before the chunk becomes too long",
    "option": "an option asks for it",
    "long sentence": "the sentence is longer than a chunk may be",
}
