from dataclasses import replace

import numpy as np
import pytest

from precise_rag import Document, Segmenter
from precise_rag.errors import InputError
from precise_rag.sentences.tables import build_tables
from support.segmentation import TWO_TOPICS


def test_scores_are_the_same_with_a_table_and_without() -> None:
    sage = Segmenter.from_pretrained("sage-minilm", device="cpu")
    documents = [Document("d", TWO_TOPICS), Document("e", "One sentence.")]
    (table, _) = build_tables(documents, sage.model.encoder)
    from_table = sage.explain(documents[0], table)
    np.testing.assert_allclose(from_table.scores, sage.explain(documents[0]).scores, atol=0.02)
    assert from_table.n_tokens.tolist() == table.n_tokens.tolist()
    assert [len(chunks) > 0 for chunks in sage.segment_many(documents)] == [True, True]
    foreign = replace(table, vectors=table.vectors[:, :100])
    with pytest.raises(InputError, match="got 100"):
        sage.explain(documents[0], foreign)
