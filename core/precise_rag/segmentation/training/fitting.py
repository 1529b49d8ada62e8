"""Training: batches, early stopping on held-out documents, checkpoints that resume."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from precise_rag.errors import InputError
from precise_rag.segmentation.training.corpus import Batch, TrainingCorpus, area_under_curve
from precise_rag.segmentation.training.data import UNKNOWN
from precise_rag.types import FloatArray

_WARM_UP = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """One training run.

    batch_size, window: in sentences. encoder_learning_rate: of an encoder that is fine-tuned.
    loss: binary cross-entropy ("bce"), or the paper's "mse". held_out: share of the documents.
    patience: epochs without improvement before stopping. splice: share of the windows that are joined
    from pieces of several documents, to show plain changes of topic.
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
        if min(self.epochs, self.batch_size, self.window, self.patience) < 1:
            raise InputError(f"epochs, batch_size, window and patience must be at least 1: {self}")
        if not 0 < self.held_out < 1:
            raise InputError(f"held_out is {self.held_out}; it must lie between 0 and 1")
        if not 0 <= self.splice < 1:
            raise InputError(f"splice is {self.splice}; it must be at least 0 and below 1")
        if self.loss not in ("bce", "mse"):
            raise InputError(f'loss is {self.loss!r}; expected "bce" or "mse"')


Forward = Callable[[Batch, float], Tensor]
"""(batch, dropout) to (n_places, 2) logits."""


def fit(
    network: nn.Module,
    forward: Forward,
    corpus: TrainingCorpus,
    settings: TrainingSettings,
    checkpoint: Path,
    *,
    show_progress: bool = True,
) -> dict[str, Any]:
    """Fit `network`, leave it with the best epoch's weights, and return its held-out figures.

    After every epoch the state is written to `checkpoint`; a run that finds one there with the
    same settings goes on from it, and reaches the same weights as one never interrupted.
    """
    rng = np.random.default_rng(settings.seed)
    torch.manual_seed(settings.seed)
    plan = [
        list(corpus.batches(settings.batch_size, settings.window, rng, splice=settings.splice))
        for _ in range(settings.epochs)
    ]
    optimizer = torch.optim.AdamW(_groups(network, settings), lr=settings.learning_rate, weight_decay=0.0)
    state = _Checkpoint(checkpoint, network, optimizer, settings)
    history = state.resume()
    step, n_steps = sum(map(len, plan[: len(history)])), sum(map(len, plan))
    for epoch in range(len(history), settings.epochs):
        if _stalled(history, settings.patience):
            break
        torch.manual_seed(settings.seed + epoch)
        network.train()
        total = 0.0
        bar = tqdm(plan[epoch], desc=f"epoch {epoch + 1}/{settings.epochs}", disable=not show_progress)
        for batch in bar:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * _pace(step / n_steps)
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
        bar.write(json.dumps({k: v for k, v in history[-1].items() if k != "domains"}))
        state.save(history)
    best = min(history, key=lambda figures: figures["loss"])
    state.load_best()
    return best


def held_out_figures(
    network: nn.Module, forward: Forward, corpus: TrainingCorpus, settings: TrainingSettings
) -> dict[str, Any]:
    """Loss and areas under the curve on the held-out documents, over all and by domain."""
    logits, loss = held_out_logits(network, forward, corpus, settings)
    return {"loss": loss, **areas_by_domain(logits, corpus)}


def held_out_logits(
    network: nn.Module, forward: Forward, corpus: TrainingCorpus, settings: TrainingSettings
) -> tuple[FloatArray, float]:
    """(n, 2) logits of the held-out documents, NaN for all others, and the mean loss."""
    network.eval()
    logits = np.full(corpus.targets.shape, np.nan, dtype=np.float32)
    losses = []
    with torch.no_grad():
        for batch in corpus.held_out_batches(settings.batch_size):
            out = forward(batch, 0.0)
            losses.append(_loss(out, batch, settings.loss).item())
            logits[batch.sentences] = out[torch.from_numpy(batch.places)].cpu().numpy()
    return logits, float(np.mean(losses)) if losses else float("nan")


def areas_by_domain(logits: FloatArray, corpus: TrainingCorpus) -> dict[str, Any]:
    """Areas under the curve where there are logits, over all and under "domains" for each domain."""
    names = np.repeat(np.array(corpus.domains, dtype=object), np.diff(corpus.starts))
    seen = ~np.isnan(logits[:, 0])
    domains = {name: _areas(logits, corpus, seen & (names == name)) for name in sorted(set(names[seen]))}
    return {**_areas(logits, corpus, seen), "domains": domains}


def _areas(logits: Any, corpus: TrainingCorpus, chosen: Any) -> dict[str, float]:
    areas = {}
    for column, name in enumerate(("paragraph_auc", "section_auc")):
        known = chosen & (corpus.targets[:, column] != UNKNOWN)
        areas[name] = round(area_under_curve(logits[known, column], corpus.targets[known, column] == 1), 4)
    areas["sentences"] = int(chosen.sum())
    return areas


def _loss(logits: Tensor, batch: Batch, kind: str) -> Tensor:
    """The mean loss over the known labels of both kinds."""
    targets = torch.from_numpy(batch.targets).to(logits.device)
    known = targets != UNKNOWN
    chosen = logits[torch.from_numpy(batch.places).to(logits.device)][known]
    labels = targets[known].float()
    if kind == "mse":
        return F.mse_loss(chosen.sigmoid(), labels)
    return F.binary_cross_entropy_with_logits(chosen, labels)


def _groups(network: nn.Module, settings: TrainingSettings) -> list[dict[str, Any]]:
    """The parameters with the learning rate each reaches; a ModuleDict has a head and an encoder."""
    if not isinstance(network, nn.ModuleDict):
        return [{"params": list(network.parameters()), "peak": settings.learning_rate}]
    return [
        {"params": list(network["head"].parameters()), "peak": settings.learning_rate},
        {"params": list(network["encoder"].parameters()), "peak": settings.encoder_learning_rate},
    ]


def _pace(done: float) -> float:
    """The share of the learning rate after a share of the steps: a short rise, then a cosine's fall."""
    return min(done / _WARM_UP, 1.0) * 0.5 * (1 + math.cos(math.pi * done)) + 1e-3


def _stalled(history: list[dict[str, Any]], patience: int) -> bool:
    losses = [figures["loss"] for figures in history]
    return len(losses) > patience and min(losses[-patience:]) > min(losses[:-patience])


class _Checkpoint:
    """The last epoch's weights and optimiser, the best epoch's weights, and the history."""

    def __init__(
        self, folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer, settings: TrainingSettings
    ) -> None:
        self.folder, self.network, self.optimizer, self.settings = folder, network, optimizer, settings

    def resume(self) -> list[dict[str, Any]]:
        record = self.folder / "history.json"
        if not record.exists():
            return []
        saved = json.loads(record.read_text())
        if saved["settings"] != asdict(self.settings):
            raise InputError(
                f"{self.folder} holds a run with other settings: {saved['settings']}; "
                "give the same ones to resume it, or another folder"
            )
        self.network.load_state_dict(load_file(self.folder / "last.safetensors"))
        packed = load_file(self.folder / "optimizer.safetensors")
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in packed.items():
            place, _, key = name.partition(".")
            state.setdefault(int(place), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        history: list[dict[str, Any]] = saved["history"]
        return history

    def save(self, history: list[dict[str, Any]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        weights = {
            name: value.detach().cpu().contiguous() for name, value in self.network.state_dict().items()
        }
        if history[-1]["loss"] == min(figures["loss"] for figures in history):
            save_file(weights, self.folder / "best.safetensors")
        save_file(weights, self.folder / "last.safetensors")
        state = self.optimizer.state_dict()["state"]
        packed = {f"{place}.{key}": value for place, values in state.items() for key, value in values.items()}
        save_file(packed, self.folder / "optimizer.safetensors")
        record = self.folder / "history.json.new"
        record.write_text(json.dumps({"settings": asdict(self.settings), "history": history}, indent=1))
        record.replace(self.folder / "history.json")

    def load_best(self) -> None:
        self.network.load_state_dict(load_file(self.folder / "best.safetensors"))
