"""How an excerpt is written into a prompt."""

from langchain_core.prompts import PromptTemplate

DOCUMENT_PROMPT = PromptTemplate.from_template(
    "{{#section}}{{{section}}}\n{{/section}}{{{page_content}}}", template_format="mustache"
)
"""Document prompt for chains that take one: the text of an excerpt below the titles and headings above it.

It is for what our retriever, compressors and chain return: the first document of each section has what stands
above it in its metadata "section", the others an empty text. Others' documents need the entry, too.
"""
