"""LangChain's words for arguments; any other word raises an error that names the right one."""

from typing import Any

from precise_rag._arguments import OPTION_WORDS, check_names, named_by, own_errors

WORDS = OPTION_WORDS | {
    "embeddings": "encoder embed_model embedding embedding_model embedding_function",
    "llm": "model chat_model language_model",
    "reranker": "model cross_encoder base_compressor llm",
    "k": "top_k similarity_top_k n_results",
    "top_n": "k top_k similarity_top_k",
    'search_kwargs={"filter": …}': "filter filters where",
    "search_kwargs": "kwargs search_options",
    "documents": "docs nodes texts",
    "retriever": "base_retriever vectorstore",
    "store": "vectorstore vector_store",
    "model": "encoder embeddings embed_model model_name",
}
"""What users of other components write for each of our words."""

WANTED = {
    "index": "an index of precise-rag",
    "retriever": "a LangChain retriever, or another Runnable from a question to documents",
}
"""What to pass for an argument, where pydantic's own words do not say it."""

own_words = named_by(WORDS)
"""Decorator of methods that take LangChain's words."""


class OwnWords:
    """Mixin of pydantic models whose fields have LangChain's words."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        check_names(type(self).__name__, fields, type(self).model_fields, WORDS)  # type: ignore[attr-defined]
        with own_errors(type(self).__name__, WANTED):
            super().__init__(*args, **fields)
