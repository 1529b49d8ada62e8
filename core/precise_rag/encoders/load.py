"""Loading an encoder from a name, a folder or an object."""

from pathlib import Path

from precise_rag.encoders.framework import FrameworkEncoder, is_framework_embedding
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.encoders.packaged import MINILM, packaged_minilm
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder

DEFAULT_ENCODER = "all-MiniLM-L6-v2"


def load_encoder(name_or_path_or_object: object = DEFAULT_ENCODER, device: str | None = None) -> Encoder:
    """Load an encoder.

    name_or_path_or_object: one of
      - a sentence-transformers model name or folder; default "all-MiniLM-L6-v2", which the extra
        "offline" installs;
      - "openai:" and an OpenAI model, for instance "openai:text-embedding-3-small", optionally with
        the number of dimensions: "openai:text-embedding-3-small/256";
      - a LlamaIndex or LangChain embedding object; of one that wraps an `Encoder`, that encoder;
      - an `Encoder`, which is returned unchanged.
    device: "cpu", "cuda", "cuda:1", …; default: a GPU if available.
    Raises ModelError if the model cannot be found or its checksum is wrong, MissingExtra if a package
    is missing, InputError for any other object.
    """
    source = name_or_path_or_object
    if isinstance(source, str | Path):
        if str(source).startswith("openai:"):
            model, _, dimensions = str(source).removeprefix("openai:").partition("/")
            if dimensions and not dimensions.isdecimal():
                raise InputError(f"{source!r}: the part after '/' must be the number of dimensions")
            return OpenAIEncoder(model, dimensions=int(dimensions) if dimensions else None)
        return SentenceTransformerEncoder(source, device=device)
    if isinstance(source, Encoder):
        return source
    if is_framework_embedding(source):
        own = getattr(source, "encoder", None)
        return own if isinstance(own, Encoder) else FrameworkEncoder(source)
    raise InputError(
        f"{type(source).__name__} is not an encoder; pass a model name, a folder, an object with "
        "`encode`, `encode_queries` and `count_tokens`, or a LlamaIndex or LangChain embedding object"
    )


def load_packaged_encoder(name: str, device: str | None = None) -> Encoder | None:
    """Load an encoder that is installed as a Python package; nothing else is looked for.

    name: name of the encoder.
    device: as for `load_encoder`.
    Returns None if no package has an encoder of this name.
    Raises ModelError if its checksum is wrong.
    """
    folder = packaged_minilm() if name == MINILM else None
    if folder is None:
        return None
    encoder = SentenceTransformerEncoder(folder, device=device)
    encoder.source = MINILM
    return encoder
