"""The training loop, with early stopping on held-out documents."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional as F

from precise_rag._progress import progress_bar
from precise_rag.checks import check_choice, check_number
from precise_rag.errors import InputError
from precise_rag.segmentation.training.corpus import Batch, TrainingCorpus
from precise_rag.segmentation.training.labelled_documents import UNKNOWN
from precise_rag.types import FloatArray

_WARM_UP = 0.1
"""Share of the steps in which the learning rate rises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """Settings of a training run.

    epochs: passes over the documents, at most; default 3.
    batch_size, window: sentences in a batch and in a window; default 2048 and 128.
    learning_rate: the highest of the run; default 2e-3.
    encoder_learning_rate: the highest for an encoder that is fine-tuned; default 2e-5.
    dropout: 0 to 1; default 0.3.
    splice: share of the windows joined from pieces of several documents; default 0.
    loss: binary cross-entropy ("bce", default) or SAGE's squared error ("mse").
    held_out: share of the documents that are held out; default 0.05.
    patience: epochs without improvement before training stops; default 2.
    seed: of the batches, the dropout and the held-out documents; default 0.

    Raises InputError for a value out of range.
    """

    epochs: int = 3
    batch_size: int = 2048
    window: int = 128
    learning_rate: float = 2e-3
    encoder_learning_rate: float = 2e-5
    dropout: float = 0.3
    splice: float = 0.0
    loss: Literal["bce", "mse"] = "bce"
    held_out: float = 0.05
    patience: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "window", "patience"):
            check_number(name, getattr(self, name), least=1, whole=True)
        for name in ("learning_rate", "encoder_learning_rate"):
            check_number(name, getattr(self, name), above_zero=True)
        check_number("seed", self.seed, least=0, whole=True)
        if not 0 < self.held_out < 1:
            raise InputError(f"held_out must be between 0 and 1, got {self.held_out}")
        for name in ("splice", "dropout"):
            if not 0 <= (value := getattr(self, name)) < 1:
                raise InputError(f"{name} must be at least 0 and less than 1, got {value}")
        check_choice("loss", self.loss, ("bce", "mse"))


Forward = Callable[[Batch, float], Tensor]
"""Function from (batch, dropout) to (n_places, 2) logits."""


def fit(
    network: nn.Module,
    forward: Forward,
    corpus: TrainingCorpus,
    settings: TrainingSettings,
    *,
    is_trained: bool = False,
) -> dict[str, Any]:
    """Fit a network, leave it with the weights of its best epoch, and return their held-out figures.

    network: has the parameters. forward: runs it on a batch. is_trained: whether the network is a trained
    one, which is then epoch 0, with figures under "start". It is the best unless an epoch is surely better,
    see `surely_better`.
    """
    rng = np.random.default_rng(settings.seed)
    torch.manual_seed(settings.seed)
    plan = [
        list(corpus.batches(settings.batch_size, settings.window, rng, splice=settings.splice))
        for _ in range(settings.epochs)
    ]
    optimizer = torch.optim.AdamW(_groups(network, settings), lr=settings.learning_rate, weight_decay=0.0)
    history: list[dict[str, Any]] = []
    best_weights: dict[str, Tensor] = {}
    if is_trained:
        history.append({"epoch": 0, **held_out_figures(network, forward, corpus, settings)})
        best_weights = _copied_weights(network)
    step, n_steps = 0, sum(map(len, plan))
    for epoch in range(settings.epochs):
        losses, latest = [figures["loss"] for figures in history], -settings.patience
        if len(losses) > settings.patience and min(losses[latest:]) > min(losses[:latest]):
            break
        torch.manual_seed(settings.seed + epoch)
        network.train()
        total = 0.0
        bar = progress_bar(plan[epoch], shown=True, desc=f"epoch {epoch + 1}/{settings.epochs}")
        for batch in bar:
            done = step / n_steps  # of the rate: a short rise, then a fall along a cosine
            pace = min(done / _WARM_UP, 1.0) * 0.5 * (1 + math.cos(math.pi * done)) + 1e-3
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * pace
            step += 1
            optimizer.zero_grad()
            loss = _loss(forward(batch, settings.dropout), batch, settings.loss)
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
            bar.set_postfix(loss=f"{loss.item():.4f}")
        figures = held_out_figures(network, forward, corpus, settings)
        history.append({"epoch": epoch + 1, "train_loss": total / len(plan[epoch]), **figures})
        bar.write(json.dumps({k: v for k, v in history[-1].items() if k != "documents"}))
        if best_epoch(history) is history[-1]:
            best_weights = _copied_weights(network)
    network.load_state_dict(best_weights)
    several = (best_epoch(history), history[0])
    best, start = ({k: v for k, v in figures.items() if k != "documents"} for figures in several)
    return {**best, "start": start} if is_trained else best


def best_epoch(history: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of the epoch with the lowest loss.

    If training went on from a trained model, epoch 0, only epochs that are surely better than it count.
    """
    start, *others = history
    if start["epoch"] == 0:
        before = np.array(start["documents"])
        others = [one for one in others if surely_better(before, np.array(one["documents"]))]
    return min(start, *others, key=lambda one: float(one["loss"])) if others else start


def surely_better(before: FloatArray, after: FloatArray) -> bool:
    """Return whether the mean loss over documents fell by more than chance explains.

    before, after: (d,) losses of the same documents. The 95 % interval of the mean difference (Student's t)
    must be below zero; with fewer than three documents nothing is sure.
    """
    gain = before - after
    free = len(gain) - 1
    if free < 2:
        return False
    quantile = 1.96 + 2.372 / free + 2.823 / free**2 + 2.556 / free**3  # t at .975, expanded in 1 / free
    return float(gain.mean()) > quantile * float(gain.std(ddof=1)) / math.sqrt(len(gain))


def held_out_figures(
    network: nn.Module, forward: Forward, corpus: TrainingCorpus, settings: TrainingSettings
) -> dict[str, Any]:
    """Return the mean loss, the areas under the curve and the loss of each document that is held out."""
    network.eval()
    logits = np.full(corpus.targets.shape, np.nan, dtype=np.float32)
    losses = []
    with torch.no_grad():
        for batch in corpus.held_out_batches(settings.batch_size):
            out = forward(batch, 0.0)
            losses.append(_loss(out, batch, settings.loss).item())
            logits[batch.sentences] = out[torch.from_numpy(batch.places)].cpu().numpy()
    documents = _losses_by_document(logits, corpus, settings.loss)
    return {"loss": float(np.mean(losses)), **_areas(logits, corpus), "documents": documents}


def _losses_by_document(logits: FloatArray, corpus: TrainingCorpus, kind: str) -> list[float]:
    """Return the mean loss of each held-out document that has labels, in order."""
    losses = []
    for place in np.flatnonzero(corpus.held_out).tolist():
        rows = slice(int(corpus.starts[place]), int(corpus.starts[place + 1]))
        known = corpus.targets[rows] != UNKNOWN
        if known.any():
            chosen = torch.from_numpy(logits[rows][known])
            labels = torch.from_numpy(corpus.targets[rows][known])
            losses.append(round(_mean_loss(chosen, labels.float(), kind).item(), 6))
    return losses


def _areas(logits: FloatArray, corpus: TrainingCorpus) -> dict[str, float]:
    """Return the areas under the curve of the rows that have logits, and their number."""
    chosen = ~np.isnan(logits[:, 0])
    areas = {}
    for column, name in enumerate(("paragraph_auc", "section_auc")):
        known = chosen & (corpus.targets[:, column] != UNKNOWN)
        labels = corpus.targets[known, column] == 1
        has_both = labels.any() and not labels.all()
        areas[name] = round(float(roc_auc_score(labels, logits[known, column])), 4) if has_both else math.nan
    areas["sentences"] = int(chosen.sum())
    return areas


def _loss(logits: Tensor, batch: Batch, kind: str) -> Tensor:
    """Mean loss over the known labels of both columns."""
    targets = torch.from_numpy(batch.targets).to(logits.device)
    known = targets != UNKNOWN
    chosen = logits[torch.from_numpy(batch.places).to(logits.device)][known]
    return _mean_loss(chosen, targets[known].float(), kind)


def _mean_loss(chosen: Tensor, labels: Tensor, kind: str) -> Tensor:
    if kind == "mse":
        return F.mse_loss(chosen.sigmoid(), labels)
    return F.binary_cross_entropy_with_logits(chosen, labels)


def _groups(network: nn.Module, settings: TrainingSettings) -> list[dict[str, Any]]:
    """Parameters with their highest learning rates; a ModuleDict has a head and an encoder."""
    parts = network if isinstance(network, nn.ModuleDict) else {"head": network}
    peaks = {"head": settings.learning_rate, "encoder": settings.encoder_learning_rate}
    return [{"params": list(part.parameters()), "peak": peaks[name]} for name, part in parts.items()]


def _copied_weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in network.state_dict().items()}
