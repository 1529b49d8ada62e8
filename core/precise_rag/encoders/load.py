"""One door to every encoder: a name, a folder, or an object that the caller already has."""

from pathlib import Path

from precise_rag.encoders.framework import FrameworkEncoder, is_framework_embedding
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder

DEFAULT_ENCODER = "all-MiniLM-L6-v2"


def load_encoder(name_or_path_or_object: object = DEFAULT_ENCODER, device: str | None = None) -> Encoder:
    """The encoder that is meant.

    - an object that is an `Encoder` already comes back as it is;
    - a LlamaIndex or LangChain embedding object is wrapped, recognised by its methods;
    - "openai:text-embedding-3-small", with "/256" after it for 256 dimensions;
    - else a sentence-transformers folder or model name. "all-MiniLM-L6-v2" comes from the offline
      package where that is installed.

    device: "cpu", "cuda", "cuda:1", …; None takes a GPU if there is one.
    Raises ModelError if a model cannot be found or trusted, MissingExtra if a package is missing,
    InputError if the object is no encoder.
    """
    source = name_or_path_or_object
    if isinstance(source, str | Path):
        if str(source).startswith("openai:"):
            model, _, dimensions = str(source).removeprefix("openai:").partition("/")
            if dimensions and not dimensions.isdecimal():
                raise InputError(f"{source!r}: the part after '/' must be a number of dimensions")
            return OpenAIEncoder(model, dimensions=int(dimensions) if dimensions else None)
        return SentenceTransformerEncoder(source, device=device)
    if isinstance(source, Encoder):
        return source
    if is_framework_embedding(source):
        return FrameworkEncoder(source)
    raise InputError(
        f"{type(source).__name__} is no encoder: give a model name, a folder, an object with "
        "`encode`, `encode_queries` and `count_tokens`, or a LlamaIndex or LangChain embedding object"
    )
