"""The structure of a text: headings, lists, tables, code, quotes and turns, read from its marks."""

from precise_rag.structure.blocks import Block, BlockKind, Structure, TextFormat, heading_title
from precise_rag.structure.formats import read_structure

__all__ = ["Block", "BlockKind", "Structure", "TextFormat", "heading_title", "read_structure"]
