"""Encoders: texts to vectors by ONNX Runtime, sentence-transformers, OpenAI, LlamaIndex or LangChain."""

from precise_rag.encoders.framework import FrameworkEncoder
from precise_rag.encoders.load import DEFAULT_ENCODER, load_encoder

__all__ = ["DEFAULT_ENCODER", "FrameworkEncoder", "load_encoder"]
