"""Splitters and retrievers of other libraries, for comparison.

units.py      the unit of text that is searched, and plain search over units
splitters.py  splitters by name
searches.py   retrievers of LangChain and LlamaIndex
"""
