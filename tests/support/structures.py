"""What a structure says of a text, in short."""

from precise_rag.structure import Structure, read_structure


def kinds(structure: Structure) -> list[str]:
    return [block.kind + (str(block.level) if block.level else "") for block in structure.blocks]


def blocks_of(text: str) -> list[tuple[str, str]]:
    structure = read_structure(text, "text")
    return [(block.kind, text[block.start : block.end].strip("\n")) for block in structure.blocks]
