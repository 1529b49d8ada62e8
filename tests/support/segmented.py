"""A small document with its segmentation, worked out by hand."""

import numpy as np

from precise_rag import Document
from precise_rag.segmentation import Segmentation
from precise_rag.structure import read_structure

DOCUMENT = Document("<d>", "One & one. Two.\n\nThree <b>.")
FOUND = Segmentation(
    spans=np.array([[0, 11], [11, 17], [17, 27]]),
    n_tokens=np.array([3, 1, 4]),
    paragraphs=np.array([0, 0, 1]),
    scores=np.array([0.875, 0.25], dtype=np.float32),
    cuts=np.array([1]),
    lengths=np.array([4, 4]),
    structure=read_structure(DOCUMENT.text),
    blocks=np.array([0, 0, 1]),
    reasons=("topic",),
)
