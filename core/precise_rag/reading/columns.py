"""What says whether texts answer a question: the columns of the regression behind `Selection.answered`."""

import math
from collections.abc import Iterable, Sequence
from itertools import chain

from precise_rag.reading.spans import BestSpan
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.query_terms import QueryTerms
from precise_rag.stems import read_words
from precise_rag.types import Candidate


def reading_columns(query: str, texts: Sequence[Candidate], spans: Iterable[BestSpan]) -> dict[str, float]:
    """Return the columns by name.

        margin    that of the likeliest span of all, see `BestSpan`
        covered   the rarity of the question's words that are in the texts, as a share of the whole question's
        named     the same for its names and numbers; 1 without any
        best      the log-odds of the best text, if all scores are probabilities

    texts: with their scores and what stands above them. spans: the likeliest of those read, at least one.
    """
    terms = QueryTerms.of(query, packaged_reranker().idf_table)
    stems: set[str] = set()
    for text in dict.fromkeys(chain(*((text.text, *text.above) for text in texts))):
        stems |= terms.positions(read_words(text)).keys()
    named = terms.name_coverage({term: [0] for term in stems})
    columns = {
        "margin": max(spans, key=lambda span: span.score).margin,
        "covered": terms.coverage(stems),
        "named": 1.0 if math.isnan(named) else named,
    }
    if all(text.score_scale == "probability" for text in texts):
        columns["best"] = float(log_odds([max(text.score for text in texts)])[0])
    return columns
