"""BERT models as encoders on the CPU, run by ONNX Runtime."""

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from precise_rag._processes import PerProcess
from precise_rag.encoders.bert import BertNetwork, bert_network
from precise_rag.encoders.bert_files import bert_settings
from precise_rag.encoders.hub import hub_folder
from precise_rag.encoders.int8_layers import Precision
from precise_rag.encoders.local import E5, Done, LocalEncoder, Role, batches_by_length, check_no_code
from precise_rag.encoders.token_ids import read_tokenizer
from precise_rag.errors import ModelError
from precise_rag.types import FloatArray

INT8 = "int8:"
"""Before the name of an encoder: its linear layers are computed in int8."""
SAMPLE = "What is it?", 'On 3 May 1904, the "harbour" (built by Ilse Brandt) was closed; why?'
"""A query and a text by which int8 layers are scaled; see `with_precision`."""
_BATCH_TOKENS = 1_024
"""Tokens of a batch for each thread: few enough that the states stay in the processor's cache."""


class NotRunnable(ModelError):
    """A model that ONNX Runtime cannot run from its files; torch may."""


class OnnxEncoder(LocalEncoder):
    """An encoder that runs a BERT in the form of sentence-transformers on the CPU, without torch.

    name_or_path: a folder, or a name on the Hugging Face hub; with "int8:" before it, the linear layers are
        computed in int8, and that is part of the encoder's name.
    download: fetch a model that is not on this machine; default: True.
    threads: how many compute; default: OMP_NUM_THREADS, or the processors of the process.
    Raises NotRunnable if the model is not on this machine or no such BERT.

    Without "int8:" the vectors are those of `SentenceTransformerEncoder` in float32, up to rounding, and so
    is the name. The default encoder is always computed in int8. The model is loaded on first use. Texts are
    computed by length, without padding.
    """

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        device: str | None = "cpu",
        download: bool = True,
        threads: int | None = None,
    ) -> None:
        prefix = INT8 if str(name_or_path).startswith(INT8) else ""
        super().__init__(str(name_or_path).removeprefix(INT8) if prefix else name_or_path, device=device)
        folder = self._folder or hub_folder(self.source, download=download)
        settings = None if folder is None else bert_settings(folder, self.source)
        if folder is None or settings is None:
            raise NotRunnable(f"{name_or_path} holds no BERT encoder; pass it to load_encoder")
        check_no_code(folder)
        self._directory, self._settings, self._threads = folder, settings, threads
        self.source, self.name = prefix + self.source, prefix + self.name
        self._precision: Precision = "int8" if prefix or self.name == E5 else "float32"
        self._network: PerProcess[BertNetwork] = PerProcess()

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._settings.width

    @cached_property
    def tokenizer(self) -> Any:
        """The model's `tokenizers.Tokenizer`, without truncation."""
        try:
            return read_tokenizer(self._directory / "tokenizer.json")
        except Exception as error:  # the library raises no class of its own
            raise ModelError(f"{self._directory} contains no tokenizer that can be read: {error}") from error

    def load_model(self) -> None:
        """Load the model now, not at the first text."""
        _ = self.tokenizer, self.network

    @property
    def network(self) -> BertNetwork:
        """The network, loaded at its first use."""
        sample = partial(self.tokens, [p + t for p, t in zip(self._settings.prompts, SAMPLE, strict=True)])
        return self._network.get(
            lambda: bert_network(self._directory, self._settings, self._threads, self._precision, sample)
        )

    def _fill(self, rows: FloatArray, texts: Sequence[str], role: Role, done: Done) -> None:
        prompt = getattr(self._settings.prompts, role)
        tokens = self.tokens([prompt + text for text in texts] if prompt else texts)
        tokens, network = tokens.cut(self._settings.limit), self.network
        for batch in batches_by_length(tokens.lengths, _BATCH_TOKENS * network.threads):
            rows[batch] = network.vectors(tokens.of(batch))
            done(len(batch))
