"""Loading an encoder from a name, a folder or an object."""

import os
from functools import cache
from pathlib import Path

from precise_rag.checks import given_kind
from precise_rag.encoders.framework import FrameworkEncoder, is_framework_embedding
from precise_rag.encoders.local import E5
from precise_rag.encoders.onnx import OnnxEncoder, on_onnx
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder

DEFAULT_ENCODER = E5


def load_encoder(
    source: object = DEFAULT_ENCODER, device: str | None = None, *, argument: str = "encoder"
) -> Encoder:
    """Load an encoder. All in a process who name a model of this machine share it while one of them holds it.

    source: one of
      - a sentence-transformers model name or folder; default "multilingual-e5-small-6". It is in
        the package, as is "all-MiniLM-L6-v2".
        On a CPU, ONNX Runtime runs those with a file onnx/model.onnx or model.onnx; torch runs the rest,
        and all of them on a GPU (extra "torch");
      - "openai:" and an OpenAI model, for instance "openai:text-embedding-3-small", optionally with
        the number of dimensions: "openai:text-embedding-3-small/256";
      - a LlamaIndex or LangChain embedding object; of one that wraps an `Encoder`, that encoder;
      - an `Encoder`, which is returned unchanged.
    device: "cpu", "cuda", "cuda:1", …; default: a GPU if torch can use one.
    argument: name of the argument that had it, for the error.
    Raises InputError for any other object. A model is looked for at its first use, which raises ModelError
    if it cannot be found or its checksum is wrong, and MissingExtra if a package is missing.
    """
    if isinstance(source, str | Path):
        source = os.path.expanduser(source)
        if source.startswith("openai:"):
            model, _, dimensions = source.removeprefix("openai:").partition("/")
            if dimensions and not dimensions.isdecimal():
                raise InputError(f"{source!r}: the part after '/' must be the number of dimensions")
            return OpenAIEncoder(model, dimensions=int(dimensions) if dimensions else None)
        local = on_onnx(OnnxEncoder, source, device) or SentenceTransformerEncoder(source, device=device)
        return local.once()
    if isinstance(source, Encoder):
        return source
    if is_framework_embedding(source):
        own = getattr(source, "encoder", None)
        return own if isinstance(own, Encoder) else FrameworkEncoder(source)
    raise InputError(
        f"{argument} must be the name of a model, a folder, an embedding object of LlamaIndex or LangChain, "
        f"or an object with encode, encode_queries and count_tokens, got {given_kind(source)}"
    )


@cache
def default_encoder() -> Encoder:
    """Return the default encoder, which stays loaded."""
    return load_encoder()
