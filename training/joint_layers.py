"""Training the layers that read a question and a text together: those of the cascade and of the reader.

The embeddings and lower layers are MiniLM's and stay as they are. On a CPU they are read in int8, as they
will run, so that the upper layers learn from the states that they will get.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint
from precise_rag.encoders.load import minilm_encoder
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.models.packaged import packaged_model
from precise_rag.rerank.pair_network import JointLayers, copy_layers, minilm, padded

WARM_UP = 60
DROPOUT = 0.1
SAVE_EVERY = 50
"""Steps between two savings."""

Batch = TypeVar("Batch")
_TRAINED = ("together.", "sides", "across", "head.")


def start_from_package(network: JointLayers, models: Sequence[str]) -> Tokenizer:
    """Give a network the weights of packaged models, each over those before; returns the tokenizer.

    models: such as "reader"; heads of another shape, and sides that the network does not have, are left out.
    """
    torch.manual_seed(0)
    encoder = minilm()
    copy_layers(network, encoder)
    state = network.state_dict()
    for model in models:
        tensors = dequantized(load_checkpoint(packaged_model(model))[1]).items()
        known = {name: torch.from_numpy(t[: len(state[name])]) for name, t in tensors}
        fitting = {name: t for name, t in known.items() if state[name].shape == t.shape}
        network.load_state_dict({**network.state_dict(), **fitting})
    for part in (network.words, network.places, network.norm, network.apart):
        part.requires_grad_(False)
    return encoder.tokenizer


def trained_tensors(network: JointLayers) -> dict[str, torch.Tensor]:
    """Return the tensors that differ from MiniLM's."""
    return {name: tensor for name, tensor in network.state_dict().items() if name.startswith(_TRAINED)}


class LowerLayers:
    """The layers that read each text apart, and are not trained.

    network: on a GPU its own are taken; on a CPU those that ONNX Runtime reads in int8.
    """

    def __init__(self, network: JointLayers) -> None:
        self._network = network
        self._device = network.sides.device
        is_on_cpu = self._device.type == "cpu"
        self._int8 = minilm_encoder().lower_layers(network.config.n_apart, "int8") if is_on_cpu else None

    def states(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the (n, l, width) states of texts, which are token ids, and the mask, false at padding."""
        ids, mask = padded(rows)
        if self._int8 is None:
            ids, mask = ids.to(self._device), mask.to(self._device)
            with torch.no_grad():
                return self._network.encode(ids, mask), mask
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        tokens = TokenIds(np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]), offsets)
        states = torch.zeros(*ids.shape, self._network.config.width)
        states[mask] = torch.from_numpy(self._int8.states(tokens, self._network.config.n_apart))
        return states, mask


def add_options(parser: ArgumentParser) -> None:
    """Add the options that both trainings have."""
    parser.add_argument("state", type=Path, metavar="STATE", help="folder that keeps the network")
    parser.add_argument("--start", type=Path, help="network.pt to go on from")
    parser.add_argument("--device", default="cpu", help="where it is trained, such as cuda (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the examples (%(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="of training (%(default)s)")
    parser.add_argument("--rate", type=float, default=1.0, help="share of the learning rates (%(default)s)")


def train(
    network: JointLayers,
    batches: Iterable[Batch],
    loss_of: Callable[[Batch], torch.Tensor],
    rates: dict[str, float],
    options: Namespace,
) -> None:
    """Train a network; `network.pt` in the folder has the trained tensors.

    batches: without end. rates: learning rates of "layers", "head" and "gates" at the start; they fall to 0
    within the minutes. options: of `add_options`.
    """
    options.state.mkdir(parents=True, exist_ok=True)
    torch.set_flush_denormal(True)
    if options.start:
        network.load_state_dict({**network.state_dict(), **torch.load(options.start, map_location="cpu")})
    network.train()
    hooks = [
        part.register_forward_hook(_with_dropout)
        for layer in network.together
        for part in (layer.out, layer.down)
    ]
    parameters = {
        "layers": list(network.together.parameters()),
        "head": list(network.head.parameters()),
        "gates": [network.sides, network.across],
    }
    every = [p for several in parameters.values() for p in several]
    optimizer = torch.optim.AdamW(
        [{"params": several, "lr": rates[name]} for name, several in parameters.items()],
        betas=(0.9, 0.98),
        weight_decay=0.01,
    )
    started, losses = time.time(), []
    for step, batch in enumerate(batches, 1):
        minutes = (time.time() - started) / 60
        left = 1 - minutes / options.minutes
        if left <= 0:
            break
        for group, rate in zip(optimizer.param_groups, rates.values(), strict=True):
            group["lr"] = options.rate * rate * left * min(1.0, step / WARM_UP)
        loss = loss_of(batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(every, 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % SAVE_EVERY == 0:
            cpu = time.process_time() / 60
            mean = np.mean(losses[-SAVE_EVERY:])
            print(f"step {step}, {minutes:.1f} min, {cpu:.1f} CPU-min: loss {mean:.4f}", flush=True)
            torch.save(trained_tensors(network), options.state / "network.pt")
    torch.save(trained_tensors(network), options.state / "network.pt")
    for hook in hooks:
        hook.remove()
    network.eval()
    print(f"done: {len(losses)} steps", flush=True)


def _with_dropout(_module: torch.nn.Module, _given: object, out: torch.Tensor) -> torch.Tensor:
    return F.dropout(out, DROPOUT)
