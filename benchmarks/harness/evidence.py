"""How much of the evidence arrives within budgets of tokens, for any two pipelines on equal terms.

The documents are laid end to end as one line of visible characters, because splitters differ in the white
space that they keep. Tokens come from one tokenisation of each whole document, so a token costs every
pipeline the same. Ranked text is read in order until the budget is full; the first span that does not fit is
cut there. Recall is the share of the visible characters of a question's evidence that is sent.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.encoders.local import MINILM, packaged_encoder
from precise_rag.encoders.token_ids import read_tokenizer
from precise_rag.types import Chunk, Document, IntArray

Values = npt.NDArray[np.float64]
"""A (n,) array of one measure, for example one value for each question."""

BUDGETS = (200, 400, 800, 1600)
"""Default budgets in tokens."""

_SPACES = np.array([code for code in range(0x3001) if chr(code).isspace()], dtype=np.uint32)
_BLANK_LINE = re.compile(r"\n\s*\n")


class Positions:
    """A collection of documents as one line of visible characters and tokens.

    find_tokens: function from a text to the (n,) start offsets of its tokens, ascending; default: the
        WordPiece of all-MiniLM-L6-v2.
    """

    def __init__(
        self, documents: Iterable[Document], find_tokens: Callable[[str], IntArray] | None = None
    ) -> None:
        self.documents = {document.id: document for document in documents}
        find_tokens = find_tokens or _word_pieces()
        self._visible: dict[str, IntArray] = {}
        starts, base = [np.zeros(0, dtype=np.int64)], 0
        for document in self.documents.values():
            visible = base + _visible_before(document.text)
            self._visible[document.id] = visible
            starts.append(visible[find_tokens(document.text)])
            base = int(visible[-1])
        self.token_starts = np.concatenate(starts)

    def locate(self, spans: Sequence[Any]) -> IntArray:
        """Return the (n, 2) positions where spans start and end; they have `doc_id`, `start` and `end`."""
        places = [(self._visible[s.doc_id][s.start], self._visible[s.doc_id][s.end]) for s in spans]
        return np.array(places, dtype=np.int64).reshape(-1, 2)

    def tokens_before(self, places: IntArray) -> IntArray:
        """Return how many tokens start before each position."""
        return np.searchsorted(self.token_starts, places).astype(np.int64)

    def count_tokens(self, spans: Sequence[Any]) -> int:
        """Return the number of tokens of all spans together."""
        return int(np.diff(self.tokens_before(self.locate(spans)), axis=1).sum())


def evidence_recall(
    positions: Positions,
    ranked: Sequence[Any],
    evidence: Sequence[Any],
    budgets: Sequence[float] = BUDGETS,
) -> Values:
    """Compute the recall of one question's evidence at each budget.

    ranked: the spans that are sent, best first. evidence: the spans that hold the answer; several are united.
    budgets: tokens; `math.inf` sends everything. Raises ValueError for evidence without a visible character.
    """
    wanted = _united(positions.locate(evidence))
    n_wanted = int((wanted[:, 1] - wanted[:, 0]).sum())
    if n_wanted == 0:
        raise ValueError("the evidence is empty or only white space; leave such questions out")
    sent = (_united(_sent(positions, ranked, budget)) for budget in budgets)
    return np.array([_overlap(places, wanted) / n_wanted for places in sent])


def covered(evidence: Iterable[Any], pieces: Sequence[Any]) -> float:
    """Compute the share of the characters of some evidence that is in some pieces, white space included."""
    total = inside = 0
    for doc_id, start, end in evidence:
        marks = np.zeros(end - start, dtype=np.bool_)
        for piece in pieces:
            if piece.doc_id == doc_id and piece.start < end and piece.end > start:
                marks[max(piece.start - start, 0) : piece.end - start] = True
        total, inside = total + len(marks), inside + int(marks.sum())
    return inside / total


def useful_ratio(
    positions: Positions,
    ranked: Sequence[Any],
    evidence: Sequence[Any],
    sentences: IntArray,
    budget: float = 450,
) -> float:
    """Compute the share of sent sentences that hold evidence; 0 if no sentence is sent.

    A sentence is sent if its first visible character is. sentences: `positions.locate` of all sentences.
    Source: ParetoRAG, appendix B (Table 2), which reads about 450 tokens.
    """
    sent = _united(_sent(positions, ranked, budget))
    first = sentences[:, :1]
    is_sent = ((sent[:, 0] <= first) & (first < sent[:, 1])).any(axis=1)
    inside = sentences[is_sent & (sentences[:, 0] < sentences[:, 1])]
    if not len(inside):
        return 0.0
    wanted = _united(positions.locate(evidence))
    holds = (inside[:, :1] < wanted[:, 1]) & (wanted[:, 0] < inside[:, 1:])
    return float(holds.any(axis=1).mean())


class RankedPassages:
    """The paragraphs of a collection as the items of a ranking: whatever units pipelines return."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        passages = [
            Chunk(document.id, start, end, "")
            for document in positions.documents.values()
            for start, end in _paragraphs(document.text)
        ]
        places = positions.locate(passages)
        visible = places[:, 0] < places[:, 1]
        self._places = places[visible]
        self._ids = [passage.id for passage, keep in zip(passages, visible, strict=True) if keep]

    def ids(self, spans: Sequence[Any]) -> list[str]:
        """Return the ids of the paragraphs that the spans touch, each once, in the order of the spans."""
        places = self._positions.locate(spans)
        places = places[places[:, 0] < places[:, 1]]
        first = np.searchsorted(self._places[:, 1], places[:, 0], side="right")
        last = np.searchsorted(self._places[:, 0], places[:, 1], side="left")
        ranges = zip(first.tolist(), last.tolist(), strict=True)
        return list(dict.fromkeys(name for begin, end in ranges for name in self._ids[begin:end]))


def _sent(positions: Positions, ranked: Sequence[Any], budget: float) -> IntArray:
    """Return the (n, 2) positions that are sent, the last span cut at the budget."""
    places = positions.locate(ranked)
    before = positions.tokens_before(places)
    read = np.concatenate(([0], np.cumsum(before[:, 1] - before[:, 0])))
    limit = int(min(budget, read[-1]))
    full = int(np.searchsorted(read, limit, side="right")) - 1
    sent = places[: full + 1].copy()
    if full < len(places):
        rest = limit - int(read[full])
        sent[full, 1] = positions.token_starts[before[full, 0] + rest] if rest else sent[full, 0]
    return sent


def _united(places: IntArray) -> IntArray:
    """Return the union of spans as disjoint ascending spans."""
    places = places[np.argsort(places[:, 0], kind="stable")]
    if not len(places):
        return places
    reach = np.maximum.accumulate(places[:, 1])
    first = np.flatnonzero(np.concatenate(([True], places[1:, 0] > reach[:-1])))
    return np.column_stack((places[first, 0], np.maximum.reduceat(places[:, 1], first)))


def _overlap(spans: IntArray, others: IntArray) -> int:
    """Return how many positions two lists of disjoint ascending spans share."""
    low = np.maximum(spans[:, None, 0], others[None, :, 0])
    high = np.minimum(spans[:, None, 1], others[None, :, 1])
    return int(np.maximum(high - low, 0).sum())


def _paragraphs(text: str) -> list[tuple[int, int]]:
    ends = [match.end() for match in _BLANK_LINE.finditer(text)]
    return list(zip([0, *ends], [*ends, len(text)], strict=True))


def _visible_before(text: str) -> IntArray:
    """Return the (len(text) + 1,) counts of visible characters before each offset."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.concatenate(([0], np.cumsum(~np.isin(codes, _SPACES)))).astype(np.int64)


def _word_pieces() -> Callable[[str], IntArray]:
    tokenizer = read_tokenizer(packaged_encoder(MINILM) / "tokenizer.json")

    def find_tokens(text: str) -> IntArray:
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        return np.array([start for start, _ in offsets], dtype=np.int64)

    return find_tokens
