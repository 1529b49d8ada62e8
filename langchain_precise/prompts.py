"""How an excerpt is written into a prompt."""

from langchain_core.prompts import PromptTemplate

DOCUMENT_PROMPT = PromptTemplate.from_template(
    "{{#section}}{{{section}}}\n{{/section}}{{{page_content}}}", template_format="mustache"
)
"""Document prompt for chains that take one: the text of an excerpt below the titles and headings above it.

It is for what `PreciseRetriever`, `EvidenceCompressor` and `SelfFeedbackChain` return: the first excerpt of
each section has what stands above it in its metadata "section", and the others have an empty text there.
"""
