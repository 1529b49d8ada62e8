"""Training of a segmentation model, from labelled documents to a folder that Segmenter loads."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from precise_rag.encoded import encode_documents
from precise_rag.encoders.devices import best_device
from precise_rag.encoders.local import LocalEncoder
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder
from precise_rag.segmentation.networks import (
    SageConfig,
    SageNetwork,
    SmallConfig,
    SmallNetwork,
    sage_tensors,
    small_network,
    small_tensors,
)
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel
from precise_rag.segmentation.training.corpus import Batch, TrainingCorpus
from precise_rag.segmentation.training.fine_tuning import embed, trainable
from precise_rag.segmentation.training.fitting import Forward, TrainingSettings, fit
from precise_rag.segmentation.training.labelled_documents import LabelledDocument
from precise_rag.segmentation.word_pieces import WordPieces, train_word_pieces
from precise_rag.types import FloatArray, IntArray


def train_small(
    documents: Sequence[LabelledDocument],
    folder: Path,
    settings: TrainingSettings,
    *,
    vocabulary_size: int = 24_000,
    encoder: Encoder | None = None,
    start: Path | None = None,
    device: str | None = None,
) -> dict[str, Any]:
    """Train a model of the family `small` and return its held-out figures.

    documents: the training data. folder: for the model. settings: of the run.
    vocabulary_size: word pieces; default 24,000.
    encoder: its vectors of the word pieces, reduced by principal components, are the first token
    vectors; default: random ones. start: folder of a model of this family to go on from, with its word
    pieces and sizes; default: none. It is kept if no epoch is better on the held-out documents, and the
    report has its figures under "start". device: such as "cpu"; default: CUDA if there is one.
    """
    place = torch.device(best_device(device))
    corpus = _corpus(documents, settings)
    torch.manual_seed(settings.seed)
    given = None if start is None else SmallModel.load(start)
    word_pieces = given.word_pieces if given else _word_pieces(documents, corpus, vocabulary_size)
    ids = word_pieces.encode(text for document in documents for text in document.sentences)
    network = small_network(given.config, given.tensors) if given else _new_network(word_pieces, ids, encoder)
    network.to(place)

    def forward(batch: Batch, dropout: float) -> Tensor:
        read, offsets, _ = ids.of(batch.sentences)
        tokens, starts, places = (torch.from_numpy(one).to(place) for one in (read, offsets, batch.places))
        with half_precision_on_gpu(place):
            logits: Tensor = network(tokens, starts, places, batch.n_places, dropout)
        return logits.float()

    report = fit(network, forward, corpus, settings, is_trained=start is not None)
    config = {"family": "small", "options": {}, **asdict(network.config), "training": asdict(settings)}
    SmallModel.save(folder, config, small_tensors(network), word_pieces)
    return report


def _new_network(word_pieces: WordPieces, ids: TokenIds, encoder: Encoder | None) -> SmallNetwork:
    network = SmallNetwork(SmallConfig(vocabulary=len(word_pieces.pieces)))
    with torch.no_grad():
        network.weights.copy_(torch.from_numpy(frequency_weights(ids.ids, len(word_pieces.pieces))))
        if encoder is not None:
            pieces = [piece.removeprefix("##") for piece in word_pieces.pieces]
            encoded = encode_documents(encoder, pieces, show_progress=True)
            vectors = principal_components(encoded, network.config.dimension)
            network.vectors.copy_(torch.from_numpy(vectors))
    return network


def train_sage(
    documents: Sequence[LabelledDocument],
    folder: Path,
    settings: TrainingSettings,
    *,
    encoder: Encoder,
    config: SageConfig | None = None,
    fine_tune: bool = False,
    device: str | None = None,
) -> dict[str, Any]:
    """Train a model of the family `sage` on an encoder's vectors and return its held-out figures.

    documents, folder, settings: as for `train_small`.
    encoder: makes the sentence vectors. config: sizes of the head; default: `SageConfig`'s.
    fine_tune: also train the encoder, except its token vectors, on the device where it was loaded, and
    save it with the head. Default False: each sentence is encoded once, before training.
    device: where the head is trained without fine_tune, such as "cpu"; default: CUDA if there is one.
    Raises InputError if fine_tune is set and the encoder is not a sentence-transformers model.
    """
    corpus = _corpus(documents, settings)
    torch.manual_seed(settings.seed)
    network = SageNetwork(config or SageConfig(dimension=encoder.dimension))
    texts = [text for document in documents for text in document.sentences]
    source = getattr(encoder, "source", encoder.name)
    if fine_tune:
        if not isinstance(encoder, LocalEncoder):
            raise InputError(
                f"encoder must be a sentence-transformers model to be fine-tuned, got {encoder.name}"
            )
        module = SentenceTransformerEncoder(encoder.source, device=encoder.device).module
        trained: torch.nn.Module = torch.nn.ModuleDict({"head": network.to(module.device), "encoder": module})
        source = "encoder"
        with trainable(module):
            forward = _forward(network, lambda rows: embed(module, [texts[row] for row in rows]), half=False)
            report = fit(trained, forward, corpus, settings)
    else:
        place = torch.device(best_device(device))
        vectors = torch.from_numpy(encode_documents(encoder, texts, show_progress=True)).half()
        forward = _forward(network.to(place), lambda rows: vectors[rows].float().to(place), half=True)
        report = fit(network, forward, corpus, settings)
    fields = {"family": "sage", "encoder": source, "options": {}, **asdict(network.config)}
    if fine_tune:
        module.save_pretrained(str(folder / source))
        fields["encoder_name"] = SentenceTransformerEncoder(folder / source).name
    SageModel.save(folder, {**fields, "training": asdict(settings)}, sage_tensors(network))
    return report


def half_precision_on_gpu(device: torch.device) -> torch.autocast:
    """Autocast to bfloat16 on CUDA; on a CPU these networks are too small to gain by it."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def frequency_weights(ids: IntArray, size: int) -> FloatArray:
    """Return (size,) weights whose softplus is a / (a + p), with a = 0.001 and a piece's frequency p.

    ids: all pieces of the training documents. Source: smooth inverse frequency, Arora et al. 2017.
    """
    share = np.bincount(ids, minlength=size) / max(len(ids), 1)
    weights = np.clip(1e-3 / (1e-3 + share), 0.01, None)
    return np.log(np.expm1(weights)).astype(np.float32)


def principal_components(vectors: FloatArray, dimension: int) -> FloatArray:
    """Project (n, d) vectors on their principal components, scaled to unit length on average."""
    if (width := vectors.shape[1]) < dimension:
        raise InputError(f"the encoder's vectors must have at least {dimension} dimensions, got {width}")
    centred = vectors - vectors.mean(axis=0)
    directions, _, _ = np.linalg.svd(centred.T @ centred)
    reduced = centred @ directions[:, :dimension]
    return np.asarray(reduced / np.linalg.norm(reduced, axis=1).mean(), dtype=np.float32)


def _corpus(documents: Sequence[LabelledDocument], settings: TrainingSettings) -> TrainingCorpus:
    corpus = TrainingCorpus.of(documents, held_out=settings.held_out, seed=settings.seed)
    if corpus.held_out.all() or not corpus.held_out.any():
        raise InputError(
            f"held_out must hold out some of the {len(documents)} documents and not all, "
            f"got {int(corpus.held_out.sum())} at {settings.held_out}; pass more documents or another share"
        )
    return corpus


def _word_pieces(documents: Sequence[LabelledDocument], corpus: TrainingCorpus, size: int) -> WordPieces:
    """Train the word pieces, on fewer sentences of large domains so that small ones count."""
    sentences = Counter(d.domain for d in documents for _ in d.sentences)
    typical = sorted(sentences.values())[len(sentences) // 2]
    texts = (
        text
        for document, held_out in zip(documents, corpus.held_out, strict=True)
        if not held_out
        for text in document.sentences[:: max(1, sentences[document.domain] // (4 * typical))]
    )
    return train_word_pieces(texts, size)


def _forward(network: SageNetwork, vectors_of: Callable[[IntArray], Tensor], *, half: bool) -> Forward:
    def forward(batch: Batch, dropout: float) -> Tensor:
        rows = vectors_of(batch.sentences)
        places = torch.from_numpy(batch.places).to(rows.device)
        with half_precision_on_gpu(rows.device) if half else nullcontext():
            logits: Tensor = network(rows, places, batch.n_places, dropout)
        return logits.float()

    return forward
