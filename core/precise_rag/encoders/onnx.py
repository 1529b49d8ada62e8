"""Models that ONNX Runtime runs on the CPU: encoders, and networks in ONNX files."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from precise_rag._extras import is_installed
from precise_rag._processes import PerProcess
from precise_rag.encoders.bert import BertNetwork, bert_weights, is_bert
from precise_rag.encoders.devices import runs_on_onnx
from precise_rag.encoders.hub import hub_folder
from precise_rag.encoders.int8_layers import Precision
from precise_rag.encoders.local import E5, Done, LocalEncoder, Role, check_no_code
from precise_rag.encoders.onnx_graph import Session, loaded, usable_threads
from precise_rag.encoders.reading import NotRunnable, Reading, reading_of
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.errors import ModelError
from precise_rag.types import FloatArray, IntArray

INT8 = "int8:"
"""Before the name of an encoder: its linear layers are computed in int8."""
SAMPLE = "What is it?", 'On 3 May 1904, the "harbour" (built by Ilse Brandt) was closed; why?'
"""A query and a text by which int8 layers are scaled; see `with_precision`."""
ONNX_FILES = "onnx/model.onnx", "model.onnx"
_BATCH_TOKENS = 1_024
"""Tokens of a batch for each thread: few enough that the states stay in the processor's cache."""
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}

T = TypeVar("T")


class OnnxFile:
    """A network in an ONNX file in the folder of a model, on the CPU; threads can share it.

    Its output is "sentence_embedding" or else its first one. padding: id of the token that fills up a row.
    Raises NotRunnable if there is no such file, or if it cannot be loaded or asks for other inputs than
    tokens, their types and which of them are not padding.
    """

    def __init__(self, folder: Path, padding: int) -> None:
        file = next((folder / name for name in ONNX_FILES if (folder / name).is_file()), None)
        if file is None:
            reason = "has no BERT in model.safetensors nor onnx/model.onnx"
            raise NotRunnable(folder, f"{reason}, which `optimum-cli export onnx` writes")
        self.threads, self._padding = usable_threads(), padding
        try:
            network = loaded(str(file), {}, self.threads)
        except ModelError as error:
            raise NotRunnable(file, f"is refused ({error})") from error
        self._types = {
            one.name: np.int32 if one.type == "tensor(int32)" else np.int64 for one in network.get_inputs()
        }
        if unknown := sorted(self._types.keys() - _INPUTS):
            raise NotRunnable(file, f"asks for {', '.join(unknown[:3])}, which is not known here")
        outputs = [one.name for one in network.get_outputs()]
        self.output = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]
        self._session = Session(network, {})

    def states(self, tokens: TokenIds) -> FloatArray:
        """Return the (t, width) states of all tokens, or (n, width) rows if there is one for each text."""
        ids, kinds, mask = tokens.padded(self._padding)
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
        given = {name: known[name].astype(kind) for name, kind in self._types.items()}
        found = self._session.run(self.output, given).astype(np.float32, copy=False)
        return found[mask] if found.ndim == 3 else found


def opened(source: str, folder: Path | None, *, download: bool, int8: bool = False) -> Reading:
    """Return how a model reads texts, after it was fetched if it must be and `download` says so.

    source: its folder or name. folder: where it is, if that is known. int8: ONNX files do not serve.
    Raises NotRunnable if it is not on this machine, and as `reading_of`.
    """
    weights = [*([] if int8 else ONNX_FILES), "model.safetensors"]
    folder = folder or hub_folder(source, weights, download=download)
    if folder is None:
        raise NotRunnable(source, "is not on this machine")
    check_no_code(folder)
    try:
        return reading_of(folder, source)
    except NotRunnable:
        raise
    except (ModelError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise NotRunnable(source, f"has files that cannot be read ({error})") from error


def network_of(reading: Reading, kind: type[BertNetwork], *how: Any) -> BertNetwork | OnnxFile:
    """Return the network of a model: a BERT of this kind, or else that of an ONNX file.

    how: precision and sample of a BERT; see `BertNetwork`.
    Raises NotRunnable as `OnnxFile`, and ModelError if the weights do not fit the settings.
    """
    if not is_bert(reading):
        return OnnxFile(reading.folder, reading.config.get("pad_token_id") or 0)
    weights = bert_weights(reading.folder)
    try:
        return kind(reading.config, weights, *how)
    except (ModelError, LookupError, ValueError, TypeError) as error:
        raise ModelError(f"the weights in {reading.folder} do not fit config.json: {error}") from error


def logits_of(network: BertNetwork | OnnxFile, tokens: TokenIds) -> FloatArray:
    """Return the (n,) logits that a network gives for n texts. Raises ModelError if it gives more."""
    logits = np.zeros(len(tokens.lengths), dtype=np.float32)
    for rows, batch in tokens.batches(_BATCH_TOKENS * network.threads):
        found = network.states(batch)
        if found.shape != (len(rows), 1):
            raise ModelError(f"a cross-encoder must have one output, got {found.shape[1]}")
        logits[rows] = found[:, 0]
    return logits


def on_onnx(kind: Callable[..., T], source: str | Path, device: str | None) -> T | None:
    """Return a model that ONNX Runtime runs, or None if it is left to torch.

    kind: makes it of its source, and with `download`, fetches what is not on this machine. Where torch is
        installed, it is left to torch to fetch it.
    device: as for `best_device`.
    Raises NotRunnable if torch is not installed.
    """
    has_torch = is_installed("sentence_transformers")
    try:
        return kind(source, download=not has_torch) if runs_on_onnx(device) else None
    except NotRunnable:
        if not has_torch:
            raise
        return None


class OnnxEncoder(LocalEncoder):
    """An encoder in the form of sentence-transformers on the CPU, without torch.

    name_or_path: a folder, or a name on the Hugging Face hub. It has a BERT in model.safetensors, or
        onnx/model.onnx or model.onnx. With "int8:" before it, the linear layers of a BERT are computed in
        int8, and that is part of the encoder's name.
    download: fetch a model that is not on this machine; default: True.
    Raises NotRunnable if the model is not on this machine, or needs what only torch does.

    Without "int8:" the vectors are those of `SentenceTransformerEncoder` in float32, up to rounding, and so
    is the name. The default encoder is always computed in int8. A BERT is loaded on first use, and computed
    by length, without padding.
    """

    def __init__(
        self, name_or_path: str | Path, *, device: str | None = "cpu", download: bool = True
    ) -> None:
        prefix = INT8 if str(name_or_path).startswith(INT8) else ""
        super().__init__(str(name_or_path).removeprefix(INT8) if prefix else name_or_path, device=device)
        self._reading = opened(self.source, self._folder, download=download, int8=bool(prefix))
        self._is_bert = is_bert(self._reading)
        if prefix and not self._is_bert:
            raise NotRunnable(self.source, "has no BERT in model.safetensors, whose layers int8 stands for")
        self.source, self.name = prefix + self.source, prefix + self.name
        self._precision: Precision = "int8" if prefix or self.name == E5 else "float32"
        self._network: PerProcess[BertNetwork | OnnxFile] = PerProcess()
        if not self._is_bert:
            _ = self.network  # loaded at once: whether a file can be run is seen then

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        width: int = self._reading.config.get("hidden_size", 0)
        return width if self._is_bert else self.network.states(self.tokens(["width"])).shape[1]

    @cached_property
    def tokenizer(self) -> Any:
        """The model's `tokenizers.Tokenizer`, without truncation."""
        return self._reading.tokenizer()

    def load_model(self) -> None:
        """Load the model now, not at the first text."""
        _ = self.tokenizer, self.network

    @property
    def network(self) -> BertNetwork | OnnxFile:
        """The network, loaded at its first use."""
        return self._network.get(self._load)

    def _load(self) -> BertNetwork | OnnxFile:
        sample = [prompt + text for prompt, text in zip(self._reading.prompts, SAMPLE, strict=True)]
        network = network_of(self._reading, BertNetwork, self._precision, partial(self.tokens, sample))
        if network.output == "logits":
            raise NotRunnable(self.source, "gives logits, so it is no encoder")
        return network

    def _fill(self, rows: FloatArray, texts: Sequence[str], role: Role, done: Done) -> None:
        prompt, network = getattr(self._reading.prompts, role), self.network
        tokens = self.tokens([prompt + text for text in texts] if prompt else texts)
        for chosen, batch in tokens.cut(self._reading.limit).batches(_BATCH_TOKENS * network.threads):
            rows[chosen] = pooled(network.states(batch), batch.lengths, self._reading.pooling)
            done(len(chosen))


def pooled(states: FloatArray, lengths: IntArray, pooling: str) -> FloatArray:
    """Return the (n, width) vectors of n texts, not scaled.

    states: (t, width) of their tokens, or already one for each text. lengths: (n,) tokens of each text, at
    least 1. pooling: see `Reading`.
    """
    if len(states) == len(lengths):
        return states
    last = np.cumsum(lengths) - 1
    first = last - lengths + 1
    if pooling in ("cls", "lasttoken"):
        return states[first if pooling == "cls" else last]
    vectors: FloatArray = (np.maximum if pooling == "max" else np.add).reduceat(states, first)
    if pooling == "mean":
        vectors /= lengths[:, None]
    return vectors
