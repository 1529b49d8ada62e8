import numpy as np

from precise_rag import Segmenter
from support.segmentation import TWO_TOPICS


def test_the_packaged_model_finds_the_change_of_topic(small: Segmenter) -> None:
    found = small.explain(TWO_TOPICS)
    assert int(np.argmin(found.scores)) == 3
    assert len(small.weights_sha256) == 64
