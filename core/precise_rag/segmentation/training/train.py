"""Training a segmentation model from labelled documents to a folder that Segmenter loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.errors import InputError
from precise_rag.models.packaged import packaged_model
from precise_rag.protocols import Encoder
from precise_rag.segmentation.blending import blend_by_halves, fit_weights
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel
from precise_rag.segmentation.training.card import write_card
from precise_rag.segmentation.training.corpus import Batch, TrainingCorpus
from precise_rag.segmentation.training.data import LabelledDocument
from precise_rag.segmentation.training.fine_tuning import embed, trainable
from precise_rag.segmentation.training.fitting import (
    Forward,
    TrainingSettings,
    areas_by_domain,
    fit,
    held_out_logits,
)
from precise_rag.segmentation.training.networks import (
    SageConfig,
    SageNetwork,
    SmallConfig,
    SmallNetwork,
    sage_tensors,
    small_tensors,
)
from precise_rag.segmentation.word_pieces import WordPieces, train_word_pieces
from precise_rag.types import FloatArray, IntArray


def train_small(
    documents: Sequence[LabelledDocument],
    folder: Path,
    settings: TrainingSettings,
    *,
    vocabulary_size: int = 24_000,
    encoder: Encoder | None = None,
    device: str | None = None,
    command: str = "",
    show_progress: bool = True,
) -> dict[str, Any]:
    """Train the small family; returns its held-out figures.

    encoder: token vectors start from what it makes of each word piece, reduced by principal
    components; at random without one. device: "cpu", "cuda", …; None is the best there is.
    Writes the model, its card and a resumable checkpoint.
    """
    place = best_device(device)
    corpus = _corpus(documents, settings)
    vocabulary = _vocabulary(documents, corpus, folder / "checkpoint", vocabulary_size)
    ids, offsets, _ = vocabulary.rows(text for document in documents for text in document.sentences)
    torch.manual_seed(settings.seed)
    network = SmallNetwork(SmallConfig(vocabulary=len(vocabulary.pieces)))
    with torch.no_grad():
        network.weights.copy_(torch.from_numpy(frequency_weights(ids, len(vocabulary.pieces))))
        if encoder is not None:
            pieces = [piece.removeprefix("##") for piece in vocabulary.pieces]
            vectors = principal_components(
                encoder.encode(pieces, show_progress=show_progress), network.config.dimension
            )
            network.vectors.copy_(torch.from_numpy(vectors))
    network.to(place)

    def forward(batch: Batch, dropout: float) -> Tensor:
        lengths = offsets[batch.sentences + 1] - offsets[batch.sentences]
        edges = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(offsets[batch.sentences] - edges[:-1], lengths) + np.arange(edges[-1])
        tokens, starts, places = (
            torch.from_numpy(array).to(place) for array in (ids[rows], edges, batch.places)
        )
        with half_precision_on_gpu(place):
            logits: Tensor = network(tokens, starts, places, batch.n_places, dropout)
        return logits.float()

    report = fit(network, forward, corpus, settings, folder / "checkpoint", show_progress=show_progress)
    config = {"family": "small", "options": {}, **network.config.to_dict(), "training": asdict(settings)}
    SmallModel.save(folder, config, small_tensors(network), vocabulary)
    write_card(folder, "small", documents, report, settings, command)
    return report


def train_sage(
    documents: Sequence[LabelledDocument],
    folder: Path,
    settings: TrainingSettings,
    *,
    encoder: Encoder,
    config: SageConfig | None = None,
    fine_tune: bool = False,
    words: str | None = None,
    device: str | None = None,
    command: str = "",
    show_progress: bool = True,
) -> dict[str, Any]:
    """Train SAGE's model on an encoder's vectors; returns its held-out figures.

    fine_tune: also change the encoder, which must be a sentence-transformers model, as the paper
    does (here without its token vectors); it is saved with the head, and trained where it is
    loaded. Otherwise each sentence is encoded once, before training, and the head is trained on
    `device`, None being the best there is. words: the name of a packaged small model whose logits
    are added, weighed on the held-out documents, which must be those that it was not trained on
    either (equal `held_out` and `seed`); the figures are then of weights from one half for the other.
    """
    corpus = _corpus(documents, settings)
    torch.manual_seed(settings.seed)
    network = SageNetwork(config or SageConfig(dimension=encoder.dimension))
    texts = [text for document in documents for text in document.sentences]
    checkpoint = folder / "checkpoint"
    source = getattr(encoder, "source", encoder.name)
    if fine_tune:
        if not isinstance(encoder, SentenceTransformerEncoder):
            raise InputError(f"only a sentence-transformers model can be fine-tuned, not {encoder.name}")
        module = encoder.module
        trained: torch.nn.Module = torch.nn.ModuleDict({"head": network.to(module.device), "encoder": module})
        source = "encoder"
        with trainable(module):
            forward = _forward_fine_tuned(network, module, texts)
            report = fit(trained, forward, corpus, settings, checkpoint, show_progress=show_progress)
    else:
        trained = network.to(best_device(device))
        forward = _forward_frozen(network, _vectors(texts, encoder, checkpoint, show_progress))
        report = fit(network, forward, corpus, settings, checkpoint, show_progress=show_progress)
    tensors = sage_tensors(network)
    fields = {"family": "sage", "encoder": source, "options": {}, **network.config.to_dict()}
    if words is not None:
        small = SmallModel.load(packaged_model(words))
        head, _ = held_out_logits(trained, forward, corpus, settings)
        tensors["blend"], areas = _weigh(head, small, documents, corpus)
        report = {**report, **areas}
        fields["words"] = {"model": words, "weights_sha256": small.weights_sha256}
    if fine_tune:
        module.save_pretrained(str(folder / source))
        fields["encoder_name"] = SentenceTransformerEncoder(folder / source).name
    SageModel.save(folder, {**fields, "training": asdict(settings)}, tensors)
    write_card(folder, "sage", documents, report, settings, command)
    return report


def _weigh(
    head: FloatArray, small: SmallModel, documents: Sequence[LabelledDocument], corpus: TrainingCorpus
) -> tuple[FloatArray, dict[str, Any]]:
    """(3, 2) weights of the head's logits and the small model's, and the areas that they reach together."""
    other = np.full_like(head, np.nan)
    half = np.zeros(len(head), dtype=np.int64)
    for number, place in enumerate(np.flatnonzero(corpus.held_out).tolist()):
        rows = slice(int(corpus.starts[place]), int(corpus.starts[place + 1]))
        other[rows] = np.vstack([small.read(documents[place].sentences).logits, np.zeros((1, 2))])
        half[rows] = number % 2
    seen = ~np.isnan(head[:, 0])
    mixed = np.full_like(head, np.nan)
    mixed[seen] = blend_by_halves(head[seen], other[seen], corpus.targets[seen], half[seen])
    return fit_weights(head[seen], other[seen], corpus.targets[seen]), areas_by_domain(mixed, corpus)


def best_device(name: str | None = None) -> torch.device:
    """The device of that name, or without one the GPU, if there is any."""
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def half_precision_on_gpu(device: torch.device) -> torch.autocast:
    """bfloat16 on CUDA; these networks are too small to gain by it on a CPU."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def frequency_weights(ids: IntArray, size: int) -> FloatArray:
    """(size,) raw weights whose softplus is a / (a + p), less for frequent pieces, with a = 0.001.

    Source: smooth inverse frequency, Arora et al. 2017.
    """
    share = np.bincount(ids, minlength=size) / max(len(ids), 1)
    weights = np.clip(1e-3 / (1e-3 + share), 0.01, None)
    raw: FloatArray = np.log(np.expm1(weights)).astype(np.float32)
    return raw


def principal_components(vectors: FloatArray, dimension: int) -> FloatArray:
    """(n, dimension) the vectors in the directions of greatest variance, of unit length on average."""
    if vectors.shape[1] < dimension:
        raise InputError(
            f"the encoder's vectors have {vectors.shape[1]} dimensions; at least {dimension} are needed"
        )
    centred = vectors - vectors.mean(axis=0)
    directions, _, _ = np.linalg.svd(centred.T @ centred)
    reduced = centred @ directions[:, :dimension]
    scaled: FloatArray = (reduced / np.linalg.norm(reduced, axis=1).mean()).astype(np.float32)
    return scaled


def _corpus(documents: Sequence[LabelledDocument], settings: TrainingSettings) -> TrainingCorpus:
    corpus = TrainingCorpus.of(documents, held_out=settings.held_out, seed=settings.seed)
    if corpus.held_out.all() or not corpus.held_out.any():
        raise InputError(
            f"of {len(documents)} documents {int(corpus.held_out.sum())} are held out at "
            f"held_out={settings.held_out}; give more documents, or another share"
        )
    return corpus


def _vocabulary(
    documents: Sequence[LabelledDocument], corpus: TrainingCorpus, checkpoint: Path, size: int
) -> WordPieces:
    """A vocabulary of the training documents, large domains thinned out so that small ones count."""
    file = checkpoint / "vocabulary.txt"
    if file.exists():
        return WordPieces(file.read_text(encoding="utf-8").split("\n"))
    sentences = Counter(d.domain for d in documents for _ in d.sentences)
    typical = sorted(sentences.values())[len(sentences) // 2]
    texts = (
        text
        for document, held_out in zip(documents, corpus.held_out, strict=True)
        if not held_out
        for text in document.sentences[:: max(1, sentences[document.domain] // (4 * typical))]
    )
    vocabulary = train_word_pieces(texts, size)
    checkpoint.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(vocabulary.pieces), encoding="utf-8")
    return vocabulary


def _vectors(texts: Sequence[str], encoder: Encoder, checkpoint: Path, show_progress: bool) -> FloatArray:
    """(n, d) float16 sentence vectors, kept in the checkpoint so that a resumed run has them."""
    file = checkpoint / "vectors.npy"
    if not file.exists():
        checkpoint.mkdir(parents=True, exist_ok=True)
        np.save(file, encoder.encode(texts, show_progress=show_progress).astype(np.float16))
    vectors: FloatArray = np.load(file, mmap_mode="r")
    if len(vectors) != len(texts):
        raise InputError(f"{file} has {len(vectors)} rows for {len(texts)} sentences; use another folder")
    return vectors


def _forward_frozen(network: SageNetwork, vectors: FloatArray) -> Forward:
    def forward(batch: Batch, dropout: float) -> Tensor:
        device = network.out.weight.device
        rows = torch.from_numpy(vectors[batch.sentences].astype(np.float32)).to(device)
        places = torch.from_numpy(batch.places).to(device)
        with half_precision_on_gpu(device):
            logits: Tensor = network(rows, places, batch.n_places, dropout)
        return logits.float()

    return forward


def _forward_fine_tuned(network: SageNetwork, module: Any, texts: Sequence[str]) -> Forward:
    def forward(batch: Batch, dropout: float) -> Tensor:
        rows = embed(module, [texts[row] for row in batch.sentences])
        places = torch.from_numpy(batch.places).to(rows.device)
        logits: Tensor = network(rows, places, batch.n_places, dropout)
        return logits

    return forward
