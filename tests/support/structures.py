"""What a structure says of a text, in short."""

from precise_rag.structure import Structure


def kinds(structure: Structure) -> list[str]:
    return [block.kind + (str(block.level) if block.level else "") for block in structure.blocks]
