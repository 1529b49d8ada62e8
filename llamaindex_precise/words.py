"""LlamaIndex's words for arguments; any other word raises an error that names the right one."""

from precise_rag._arguments import OPTION_WORDS, named_by

WORDS = OPTION_WORDS | {
    "embed_model": "encoder embeddings embedding embedding_model",
    "llm": "model chat_model language_model",
    "reranker": "model base_postprocessor llm",
    "similarity_top_k": "k top_k",
    "top_n": "k top_k similarity_top_k",
    "filters": "filter metadata_filters where",
    "documents": "docs nodes texts",
    "retriever": "index base_retriever",
    "query_engine": "engine",
    "store": "index vector_store vectorstore",
    "model_name": "model encoder embed_model embeddings",
}
"""What users of other components write for each of our words."""

WANTED = {
    "embed_model": "a LlamaIndex embedding, an encoder, or the name or folder of one",
    "callback_manager": "a CallbackManager",
}
"""What to pass for an argument, where pydantic's own words do not say it."""

own_words = named_by(WORDS)
"""Decorator of methods that take LlamaIndex's words."""
