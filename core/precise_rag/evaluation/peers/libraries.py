"""Which libraries a result depends on."""

from importlib.metadata import PackageNotFoundError, version

SPLITTER_LIBRARIES = (
    "langchain-text-splitters",
    "langchain-experimental",
    "langchain-classic",
    "llama-index-core",
    "chonkie",
    "semchunk",
    "bm25s",
)
"""What the pipelines of other libraries run on."""

LIBRARIES = ("numpy", "torch", "sentence-transformers", *SPLITTER_LIBRARIES, "ir-measures")
"""What is named in results."""


def installed_version(name: str) -> str:
    """The version of an installed distribution, or nothing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
