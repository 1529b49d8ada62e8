"""Write the packaged all-MiniLM-L6-v2: the official weights, their matrices rounded to int8.

    python -m training.encoder.int8 SOURCE [OUT]

SOURCE is a folder of sentence-transformers/all-MiniLM-L6-v2. Whoever writes it again enters the printed
checksum in precise_rag/encoders/packaged.toml.
"""

import argparse
import shutil
from pathlib import Path

from safetensors.numpy import load_file, save

from precise_rag.checkpoints import file_sha256, packaged_model, quantized
from precise_rag.encoders.local import MINILM_SHA256

FILES = (
    "1_Pooling/config.json",
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
BLOCK = 64
"""Columns of a matrix that share a scale."""
_WEIGHTS = "model.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path, nargs="?", default=packaged_model("encoder-minilm"))
    args = parser.parse_args()
    pack(args.source, args.out)
    print(file_sha256(args.out / _WEIGHTS))


def pack(source: Path, out: Path) -> None:
    """Write the model of `source` to `out`."""
    if file_sha256(source / _WEIGHTS) != MINILM_SHA256:
        raise SystemExit(f"{source / _WEIGHTS} is not the official one")
    for name in FILES:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, out / name)
    tensors = {name: t for name, t in load_file(source / _WEIGHTS).items() if t.dtype.kind == "f"}
    matrices = [n for n, t in tensors.items() if t.ndim == 2 and ("embeddings" not in n or "word" in n)]
    (out / _WEIGHTS).write_bytes(save(quantized(tensors, matrices, BLOCK)))


if __name__ == "__main__":
    main()
