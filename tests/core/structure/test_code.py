"""Source files: functions and classes as units, and what stands above them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from precise_rag import Document
from precise_rag.index import HybridIndex
from precise_rag.sentences.splitters import default_sentence_splitter, split_structured
from precise_rag.structure import code, read_structure, structure_of
from precise_rag.testing import HashEncoder

pytest.importorskip("tree_sitter")

LONG = "\n".join(f"        total += rate_{n} * minutes  # part {n}" for n in range(14))
PYTHON = f'''"""Pumps — and what drives them."""

import os

LIMIT = 12


# Waters the garden.
@register("pump")
class Pump(Base):
    """Moves water."""

    def relieve(self, pressure: float) -> bool:
        """Öffnet das Ventil."""
        return pressure > LIMIT

    @cached
    def litres(
        self, minutes: int
    ) -> float:
        total = 0.0

{LONG}

        return total


def main(): print(Pump())


if __name__ == "__main__":
    main()
'''

SOURCES = {
    "a.js": ("export class Pump {\n%s\n  relieve(p) {\n    return p;\n  }\n}\n", "class Pump", "relieve(p)"),
    "a.ts": (
        "export class Pump {\n%s\n  relieve(p: X) {\n    return p;\n  }\n}\n",
        "class Pump",
        "relieve(p",
    ),
    "a.tsx": ("class Pump {\n%s\n  relieve(p: X) {\n    return <b/>;\n  }\n}\n", "class Pump", "relieve(p"),
    "a.java": (
        "class Pump {\n%s\n  int relieve(int p) {\n    return p;\n  }\n}\n",
        "class Pump",
        "int relieve",
    ),
    "a.rs": ("impl Pump {\n%s\n  fn relieve(p: u8) -> u8 {\n    p\n  }\n}\n", "impl Pump", "fn relieve"),
    "a.cpp": (
        "class Pump {\n%s\n  int relieve(int p) {\n    return p;\n  }\n};\n",
        "class Pump",
        "int relieve",
    ),
    "a.cs": (
        "class Pump {\n%s\n  int Relieve(int p) {\n    return p;\n  }\n}\n",
        "class Pump",
        "int Relieve",
    ),
    "a.rb": ("class Pump\n%s\n  def relieve(p)\n    p\n  end\nend\n", "class Pump", "def relieve"),
    "a.php": (
        "<?php\nclass Pump {\n%s\n  function open() {\n    return 1;\n  }\n}\n",
        "class Pump",
        "function open",
    ),
}
FUNCTIONS = {
    "a.go": "package a\n\n// Opens it.\nfunc Relieve(p int) int {\n\treturn p\n}\n\nfunc Other() {\n}\n",
    "a.c": "#include <a.h>\n\n/* Opens it. */\nint relieve(int p) {\n  return p;\n}\n\nint other() {\n}\n",
    "a.sh": "set -e\n\n# Opens it.\nrelieve() {\n  echo 1\n}\n\nother() {\n  echo 2\n}\n",
}


def units(text: str, name: str) -> list[tuple[tuple[str, ...], str]]:
    structure = structure_of(text, {"source": f"src/{name}"})
    spans = split_structured(text, structure, default_sentence_splitter())
    assert "".join(text[start:end] for start, end in spans) == text
    return [(structure.above(start), text[start:end].strip()) for start, end in spans]


def test_functions_and_classes_are_units_below_what_is_around_them() -> None:
    found = units(PYTHON, "pump.py")
    pump, litres = "class Pump(Base)", "def litres( self, minutes: int ) -> float"
    head, opened, relieve, *parts, main, end = found
    assert head[0] == opened[0] == main[0] == end[0] == ("pump.py",)
    assert head[1].endswith("LIMIT = 12")
    assert opened[1].startswith("# Waters the garden.\n@register")
    assert relieve[0] == ("pump.py", pump)
    assert relieve[1].startswith("def relieve")
    assert relieve[1].endswith("return pressure > LIMIT")
    assert parts[0][1].startswith("@cached\n    def litres(")
    assert {above for above, _ in parts[1:]} == {("pump.py", pump, litres)}
    assert main[1] == "def main(): print(Pump())"
    assert end[1].startswith("if __name__")


@pytest.mark.parametrize("name", SOURCES)
def test_methods_are_units_in_every_language(name: str) -> None:
    source, around, begins = SOURCES[name]
    mark = "#" if name.endswith("rb") else "//"
    remarks = "\n".join(f"  {mark} line {n} of a long remark about the pump" for n in range(20))
    found = units(source % f"{remarks}\n", name)
    above, _ = next(one for one in reversed(found) if begins in one[1].splitlines()[0])
    assert above == (name, around)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_units_with_the_comment_above_them(name: str) -> None:
    _, first, second = units(FUNCTIONS[name], name)
    assert "Opens it." in first[1].splitlines()[0]
    assert first[1].rstrip().endswith("}")
    assert "ther" in second[1].splitlines()[0]


def test_a_small_class_is_one_unit() -> None:
    text = "import os\n\nclass A:\n    def b(self):\n        return 1\n\n    def c(self):\n        return 2\n"
    assert [words for _, words in units(text, "a.py")][1:] == [text[text.index("class") :].strip()]


@pytest.mark.parametrize("key", ["file_name", "file_path", "source"])
def test_the_file_is_named_as_both_frameworks_do(key: str) -> None:
    assert structure_of(PYTHON, {key: "C:\\src\\pump.py"}).heading_path(len(PYTHON) - 1) == ("pump.py",)


@pytest.mark.parametrize("text", ["", "\n", "What is this? A letter.\n" * 9, ")) {{ ''' \x00"])
def test_what_is_no_code_is_read_as_text(text: str) -> None:
    assert structure_of(text, {"source": "a.java"}).blocks == read_structure(text).blocks


def test_without_the_parser_code_is_read_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "_grammar", lambda language: None)
    assert structure_of(PYTHON, {"source": "pump.py"}).blocks == read_structure(PYTHON).blocks
    assert not code.has_parser("python")


def test_an_index_tells_where_a_function_stands() -> None:
    index = HybridIndex.build([Document("pump.py", PYTHON, {"source": "pump.py"})], HashEncoder())
    found = index.search("relieve the pressure", 20, returns="sentence")
    (above,) = {hit.above for hit in found if hit.text.strip().startswith("def relieve")}
    assert above == ("pump.py", "class Pump(Base)")


@pytest.mark.parametrize("part", ["(", "class A:\n", "def f(): pass\n", "if x:\n "])
def test_no_code_breaks_it(part: str) -> None:
    structure = structure_of(part * 5_000, {"source": "a.py"})
    assert structure.blocks[0].start == 0
    assert structure.blocks[-1].end == len(part * 5_000)


def test_threads_read_code_at_the_same_time() -> None:
    texts = [f"def name_{n}(a):\n    return a + {n}\n\n\n" * 50 for n in range(8)]
    alone = [structure_of(text, {"source": "a.py"}).blocks for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: structure_of(text, {"source": "a.py"}).blocks, texts * 4))
    assert together == alone * 4
