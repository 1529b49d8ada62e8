"""Segmenter with a trained boundary model, which is found by its name or folder."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from precise_rag.checkpoints import load_config, packaged_model
from precise_rag.checks import as_path
from precise_rag.errors import InputError, ModelError
from precise_rag.facts import copied
from precise_rag.protocols import SentenceSplitter
from precise_rag.segmentation.boundaries import BoundaryModel, choose_cuts, readable_sentences
from precise_rag.segmentation.long_sentences import cut_long, cut_recounted, inside_words
from precise_rag.segmentation.options import CutReason, Segmentation, SegmenterOptions
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel
from precise_rag.segmentation.streaming import StreamingSegmenter
from precise_rag.segmentation.ties import NEVER, is_kind, structure_ties
from precise_rag.sentences import load_sentence_splitter, paragraph_ids
from precise_rag.sentences.splitters import split_structured
from precise_rag.structure import Structure, read_structure
from precise_rag.titles import PATH_KEYS, paths_below, titles_of, with_header_path
from precise_rag.tokens import Counts, CountTokens, counting
from precise_rag.types import BoolArray, Chunk, Document, FloatArray, IntArray, SentenceTable
from precise_rag.vectors import probabilities

PACKAGED = {name: f"segmentation-{name}" for name in ("small", "sage", "sage-minilm")}
"""Folders of the packaged models, by name."""


class Segmenter(StreamingSegmenter):
    """Splits documents into chunks where the topic changes.

    It can be shared between threads, and pickled.

    model: gives the logits of boundaries; `from_pretrained` loads one.
    name: for cache keys.
    options: default: `SegmenterOptions()`.
    splitter: splits text into sentences; default: `load_sentence_splitter()`.
    count_tokens: measures a text, or several, against max_tokens and min_tokens; default: the tokens of the
        model's encoder, or of the default one.

    Source: SAGE, section IV. Differs: the cuts are chosen together, by dynamic programming, so that
    no chunk is longer than max_tokens. Blank lines count as evidence. The structure of the text ties a
    heading to what follows it, a lead-in to its list, and the rows of a table to each other.
    """

    def __init__(
        self,
        model: BoundaryModel,
        *,
        name: str,
        options: SegmenterOptions | None = None,
        splitter: SentenceSplitter | None = None,
        count_tokens: CountTokens | None = None,
    ) -> None:
        self.model, self.encoder = model, model.encoder
        self.name = name
        self.options = options or SegmenterOptions()
        self.splitter = splitter or load_sentence_splitter()
        self.count_tokens = count_tokens
        self._counts: Counts = counting(count_tokens) if count_tokens else model.count_tokens

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path = "small",
        *,
        device: str | None = None,
        encoder: Any = None,
        splitter: SentenceSplitter | None = None,
        count_tokens: CountTokens | None = None,
        **options: Any,
    ) -> Self:
        """Load a packaged model ("small", "sage", "sage-minilm") or one in a folder of `precise train`.

        device: where the model and its encoder run, such as "cpu"; default: CUDA if there is one.
        encoder: replaces the encoder named in a model that reads sentence vectors.
        splitter, count_tokens: as for `Segmenter`.
        options: fields of SegmenterOptions; they override the model's own defaults.

        Raises ModelError if the model is missing or damaged, InputError for a bad option.
        """
        if unknown := options.keys() - {field.name for field in fields(SegmenterOptions)}:
            known = ", ".join(field.name for field in fields(SegmenterOptions))
            raise InputError(f"a segmenter has no option {sorted(unknown)[0]!r}; it has {known}")
        model, defaults = load_model(name, device=device, encoder=encoder)
        usual = asdict(SegmenterOptions(**defaults))
        if "max_tokens" in options:
            for size in ("min_tokens", "target_tokens"):
                defaults.pop(size, None)
        chosen = SegmenterOptions(**{**defaults, **options})
        own = {key: value for key, value in asdict(chosen).items() if value != usual[key]}
        given = {"splitter": splitter, "count_tokens": count_tokens, "encoder": encoder and model.encoder}
        own |= {key: getattr(it, "name", getattr(it, "__qualname__", "")) for key, it in given.items() if it}
        named = f"{name}({', '.join(f'{key}={value}' for key, value in own.items())})" if own else str(name)
        return cls(model, name=named, options=chosen, splitter=splitter, count_tokens=count_tokens)

    @property
    def weights_sha256(self) -> str:
        """Checksum of the model's weights, for cache keys."""
        return self.model.weights_sha256

    def segment(self, text: str | Document, table: SentenceTable | None = None) -> list[Chunk]:
        """Split a text into chunks; joined, they are the text. Blank text has none.

        A chunk has what stands above it in `metadata["header_path"]`, as "/Title/Section/", unless the
        document's own metadata has that key: the titles, and the head of a table that begins before it.
        table: the document's sentences, if they exist. A model that reads sentence vectors takes them
        from the table if its own encoder made them. Default: computed.
        """
        document = text if isinstance(text, Document) else Document("text", text)
        if not document.text.strip():
            return []
        body, metadata, found = document.text, document.metadata, self.explain(document, table)
        spans, cuts = found.spans, found.cuts
        path = paths_below(titles_of(metadata, PATH_KEYS), found.structure)
        starts, ends = spans[np.append(0, cuts + 1), 0].tolist(), spans[np.append(cuts, -1), 1].tolist()
        return [
            Chunk(document.id, a, b, body[a:b], length, with_header_path(copied(metadata), path(a, b)))
            for a, b, length in zip(starts, ends, found.lengths.tolist(), strict=True)
        ]

    def explain(self, text: str | Document, table: SentenceTable | None = None) -> Segmentation:
        """Return the sentences, scores and cuts of a text, from which `segment` makes its chunks."""
        body = text.text if isinstance(text, Document) else text
        structure = read_structure(body, self.options.text_format)
        spans = self._spans(body, structure, table)
        sentences = [body[start:end] for start, end in spans.tolist()]
        if not sentences:
            none = np.zeros(0, dtype=np.int64)
            return Segmentation(spans, none, none, none.astype(np.float32), none, none, structure, none, ())
        blocks = structure.block_numbers(spans[:, 0])
        readable = readable_sentences(sentences, is_kind(structure, blocks, "heading"), structure.format)
        logits, counts = self.model.predict(readable, table), self._counts(sentences)
        paragraphs = paragraph_ids(body, spans)
        gains = gap_gains(logits, np.diff(paragraphs) > 0, self.options.threshold)
        limit = self.options.max_tokens
        ties = structure_ties(sentences, blocks, structure, counts, limit)
        topics = np.clip(_TOPIC_WEIGHT * (logits[:, 1] + _TOPIC_PRIOR), *_TOPIC_RANGE)
        worth = np.clip(gains, *_GAIN_RANGE) + topics - ties
        inner = np.zeros(len(gains), dtype=np.bool_)
        if counts.max() > limit:
            spans, counts, owners = cut_long(body, spans, counts, limit, self._counts)
            inner = np.diff(owners) == 0
            gains, worth = (_at_pieces(row, owners, inner) for row in (gains, worth))
            paragraphs, blocks = paragraphs[owners], blocks[owners]
        forced = self._forced(paragraphs, counts, worth)
        cuts = choose_cuts(
            worth,
            counts,
            max_tokens=limit,
            min_tokens=self.options.min_tokens or 0,
            target_tokens=self.options.target_tokens or 0,
            forced=forced,
            short_cost=_SHORT_COST,
        )
        is_additive = self.count_tokens is None and self.model.encoder is None
        unsure = inside_words(body, spans) if is_additive else np.ones(len(gains), np.bool_)
        cuts, lengths = cut_recounted(body, spans, counts, worth, cuts, unsure, limit, self._counts)
        scores = same_scores(gains, self.options.threshold)
        begins = np.append(is_kind(structure, blocks, "heading")[1:] & (np.diff(blocks) > 0), False)
        reasons: dict[CutReason, BoolArray] = {
            "long sentence": inner,
            "heading": begins,
            "topic": scores < self.options.threshold,
            "option": forced,
            "paragraph": np.diff(paragraphs) > 0,
            "length": np.ones(len(gains), dtype=np.bool_),
        }
        why = tuple(next(one for one, holds in reasons.items() if holds[gap]) for gap in cuts.tolist())
        return Segmentation(spans, counts, paragraphs, scores, cuts, lengths, structure, blocks, why)

    def _spans(self, body: str, structure: Structure, table: SentenceTable | None) -> IntArray:
        if table is not None:
            return table.spans
        sentences = split_structured(body, structure, self.splitter)
        spans = np.array(sentences, dtype=np.int64).reshape(-1, 2)
        are_crumbs = len(spans) > _MANY_SENTENCES and len(body) < _CRUMB * len(spans)
        if not are_crumbs or self.options.paragraphs == "hard":
            return spans
        first = np.flatnonzero(np.diff(spans[:, 0] // _PIECE, prepend=-1))
        return np.stack([spans[first, 0], spans[np.append(first[1:], len(spans)) - 1, 1]], axis=1)

    def _forced(self, paragraphs: IntArray, counts: IntArray, worth: FloatArray) -> BoolArray:
        forced = np.zeros(len(counts) - 1, dtype=np.bool_)
        if self.options.paragraphs == "hard":
            forced |= (np.diff(paragraphs) > 0) & (worth > -NEVER / 2)
        if self.options.coarse_tokens is not None:
            forced |= np.diff((np.cumsum(counts) - counts) // self.options.coarse_tokens) > 0
        return forced


def load_model(
    name: str | Path, *, device: str | None = None, encoder: Any = None
) -> tuple[BoundaryModel, dict[str, Any]]:
    """Load a model, and the segmenter options that it was made for.

    name: of a packaged model, or a folder.
    device: where its networks run; default: CUDA if there is one. encoder: as in `SageModel.load`.
    Raises ModelError if the model does not exist, or its files are damaged or foreign.
    """
    folder = model_folder(name)
    config = load_config(folder, {"family": str, "options": dict})
    family, options = config["family"], dict(config["options"])
    if family == "small":
        return SmallModel.load(folder, device=device), options
    if family == "sage":
        return SageModel.load(folder, encoder=encoder, device=device), options
    raise ModelError(f"{folder} must contain a model of the family small or sage, got {family!r}")


def model_folder(name: str | Path) -> Path:
    """Return the folder of a model by name or folder. Raises ModelError if it does not exist."""
    folder = as_path("name", name)
    if str(name) in PACKAGED:
        folder = packaged_model(PACKAGED[str(name)])
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"there is no segmentation model {str(name)!r}; pass {', '.join(PACKAGED)}, or a folder that "
            "`precise train` wrote"
        )
    return folder


def _at_pieces(row: FloatArray, owners: IntArray, inner: BoolArray) -> FloatArray:
    """Return the values of gaps between sentences at the gaps between their pieces, in sentences `owners`."""
    outer = row[np.minimum(owners[:-1], len(row) - 1)] if len(row) else np.float32(0)
    return np.where(inner, -_INNER_COST, outer).astype(np.float32)


_MANY_SENTENCES = 10_000
_CRUMB = 8
_PIECE = 64
"""Where many sentences are shorter than _CRUMB characters on average, as in columns of numbers, those in
_PIECE characters are read as one: it matters little which of them ends a chunk, and each costs as much as a
long one."""
_INNER_COST = 20.0
"""Cost of a cut inside a sentence: higher than between any two sentences."""
_SHORT_COST = 100.0
"""Cost of a chunk under min_tokens: less than of a chunk that ends in a heading."""
_GAIN_RANGE = (-6.0, 3.0)
"""Of one gap, so that sure boundaries, as between turns, do not make chunks of their own."""
_TOPIC_WEIGHT = 0.5
_TOPIC_PRIOR = 2.0
_TOPIC_RANGE = (-1.0, 2.0)
"""Of the further gain of a cut where a section ends, and not only a paragraph, by the logit of that."""
_BREAK_EVIDENCE = 0.25
"""Added to the log-odds of a boundary at a blank line. Low, because the words predict boundaries better
than blank lines do; tuned by the recall of evidence on the development sets."""


def gap_gains(logits: FloatArray, breaks: BoolArray, threshold: float) -> FloatArray:
    """Return the (n - 1,) gain of a cut in each gap: log-odds of a boundary minus those at the threshold.

    logits: (n - 1, 2), see `BoundaryModel`. breaks: (n - 1,) true at blank lines.
    """
    evidence = logits[:, 0] + np.where(breaks, _BREAK_EVIDENCE, 0)
    return np.asarray(evidence - np.log((1 - threshold) / threshold), dtype=np.float32)


def same_scores(gains: FloatArray, threshold: float) -> FloatArray:
    """Return the (n - 1,) probability that two neighbouring sentences belong together: SAGE's score."""
    odds = gains.astype(np.float64) + np.log((1 - threshold) / threshold)
    return probabilities(-odds).astype(np.float32)
