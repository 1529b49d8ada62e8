"""Encoders: texts to vectors by ONNX Runtime, sentence-transformers, OpenAI, LlamaIndex or LangChain."""

from precise_rag.encoders.cache import CachedEncoder as CachedEncoder
from precise_rag.encoders.framework import FrameworkEncoder as FrameworkEncoder
from precise_rag.encoders.load import DEFAULT_ENCODER as DEFAULT_ENCODER
from precise_rag.encoders.load import load_encoder as load_encoder
