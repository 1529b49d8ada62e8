"""ChunkRAG's greedy segmenter."""

from typing import Never

import numpy as np

from precise_rag.checks import check_choice, check_methods, check_number
from precise_rag.encoded import count_tokens, encode_documents
from precise_rag.encoders.geometry import cosine_like
from precise_rag.facts import copied
from precise_rag.protocols import Encoder, SentenceSplitter
from precise_rag.segmentation.long_sentences import cut_long, cut_recounted
from precise_rag.segmentation.streaming import StreamingSegmenter
from precise_rag.sentences import load_sentence_splitter
from precise_rag.tokens import CountTokens, counting
from precise_rag.types import BoolArray, Chunk, Document, IntArray, SentenceTable


class GreedySegmenter(StreamingSegmenter):
    """Segmenter that starts a new chunk where two neighbouring sentences are not similar.

    encoder: makes the sentence vectors.
    threshold: a chunk ends where the cosine is lower; default 0.7, of all-MiniLM-L6-v2 (see `cosine_like`).
    max_chars: limit of each chunk; default 500.
    splitter: splits text into sentences; default: `load_sentence_splitter()`.
    length_function: measures a text, or several, against max_chars; default: characters.

    Source: ChunkRAG, "Chunk Formation". Differs: a sentence that is too long is cut between words; the
    paper does not say what to do.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        threshold: float = 0.7,
        max_chars: int = 500,
        splitter: SentenceSplitter | None = None,
        length_function: CountTokens | None = None,
        **others: Never,
    ) -> None:
        for name in others:
            check_choice("an option of a greedy segmenter", name, ("threshold", "max_chars"))
        check_methods("encoder", encoder, ("encode", "count_tokens"), "pass encoder=load_encoder(…)")
        check_number("threshold", threshold, least=-1, most=1)
        check_number("max_chars", max_chars, least=1, whole=True)
        self.encoder: Encoder = encoder
        self.threshold = threshold
        self.max_chars = max_chars
        self.splitter = splitter or load_sentence_splitter()
        self.length_function = counting(length_function or len)

    @property
    def name(self) -> str:
        """Name with the encoder's, for cache keys."""
        return f"greedy({self.encoder.name})"

    @property
    def weights_sha256(self) -> str:
        """Empty: the only weights are the encoder's."""
        return ""

    def segment(self, text: str | Document, table: SentenceTable | None = None) -> list[Chunk]:
        """Split a text into chunks; joined, they are the text. Blank text has none.

        table: the document's sentences, with their vectors if the same encoder made them. Default: computed.
        """
        document = text if isinstance(text, Document) else Document("text", text)
        body = document.text
        if not body.strip():
            return []
        spans = np.array(self.splitter.split(body), dtype=np.int64) if table is None else table.spans
        vectors = None if table is None else table.vectors_by(self.encoder.name)
        if vectors is None:
            sentences = [body[start:end].strip() for start, end in spans.tolist()]
            vectors = encode_documents(self.encoder, sentences)
        alike = np.einsum("ij,ij->i", vectors[:-1], vectors[1:]) >= cosine_like(self.threshold, self.encoder)
        limit, length_of = self.max_chars, self.length_function
        sizes = length_of([body[start:end] for start, end in spans.tolist()])
        rows, lengths, owners = cut_long(body, spans, sizes, limit, length_of)
        together = (np.diff(owners) == 0) | np.append(alike, True)[owners[:-1]]
        cuts = _grow(lengths, together, limit)
        gains = np.where(together, -1.0, 0.0).astype(np.float32)
        unsure = np.ones(len(gains), dtype=np.bool_)  # as a whole a piece may be longer than its parts
        cuts, _ = cut_recounted(body, rows, lengths, gains, cuts, unsure, limit, length_of)
        starts, ends = rows[np.append(0, cuts + 1), 0].tolist(), rows[np.append(cuts, -1), 1].tolist()
        pieces = list(zip(starts, ends, strict=True))
        counts = count_tokens(self.encoder, [body[start:end] for start, end in pieces]).tolist()
        return [
            Chunk(document.id, start, end, body[start:end], count, copied(document.metadata))
            for (start, end), count in zip(pieces, counts, strict=True)
        ]


def _grow(lengths: IntArray, together: BoolArray, limit: int) -> IntArray:
    """The gaps at which a chunk ends; each takes what is alike while it fits."""
    cuts, size = [], int(lengths[0])
    for gap, (length, joins) in enumerate(zip(lengths[1:].tolist(), together.tolist(), strict=True)):
        if joins and size + length <= limit:
            size += length
        else:
            cuts.append(gap)
            size = length
    return np.array(cuts, dtype=np.int64)
