"""`__all__` says what each package offers; a name that is elsewhere, or gone, says what to import."""

import ast
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import langchain_precise
import llamaindex_precise
import precise_rag

PACKAGES = (precise_rag, llamaindex_precise, langchain_precise)
ELSEWHERE = [
    (package, module, name)
    for package, modules in (
        (llamaindex_precise, (llamaindex_precise.papers, llamaindex_precise.events)),
        (langchain_precise, (langchain_precise.papers,)),
    )
    for module in modules
    for name in module.__all__
]


def offering_modules():
    """Every package of ours, and the modules of the adapters that users name."""
    for package in PACKAGES:
        found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        yield package.__name__
        yield from (module.name for module in found if module.ispkg)
    yield from ("llamaindex_precise.papers", "llamaindex_precise.events", "langchain_precise.papers")


def public_imports(module):
    """The names that a module imports from us, without private ones."""
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {
            package.__name__ for package in PACKAGES
        }:
            yield from (alias.name for alias in node.names if not alias.name.startswith("_"))


@pytest.mark.parametrize("name", [*offering_modules()])
def test_a_package_that_offers_names_lists_them_and_has_them(name):
    module = import_module(name)
    if not (hasattr(module, "__all__") or set(public_imports(module))):
        return
    assert module.__all__ == sorted(module.__all__, key=ruff_order)
    offered = [getattr(module, exported) for exported in module.__all__]
    assert all(
        inspect.getdoc(value) for value in offered if inspect.isclass(value) or inspect.isroutine(value)
    )


def ruff_order(name):
    """Constants, classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize(("package", "module", "name"), ELSEWHERE)
def test_a_name_that_is_elsewhere_says_where(package, module, name):
    line = f"from {module.__name__} import {name}"
    with pytest.raises(precise_rag.MissingName, match=line) as raised:
        exec(f"from {package.__name__} import {name}")
    assert isinstance(raised.value, ImportError)
    exec(line)


@pytest.mark.parametrize(
    ("name", "instead"),
    [("FaissIndex", r"DenseIndex\(.*backend=\"faiss:"), ("WorthSelector", "ProbabilitySelector")],
)
def test_a_name_that_is_gone_says_what_to_use(name, instead):
    with pytest.raises(precise_rag.MissingName, match=f"{name} is no longer in precise_rag; use {instead}"):
        exec(f"from precise_rag import {name}")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_never_was_is_an_ordinary_error(package):
    assert not hasattr(package, "Retriver")
    with pytest.raises(ImportError, match="cannot import name 'Retriver'"):
        exec(f"from {package.__name__} import Retriver")


@pytest.mark.parametrize(("package", "module", "name"), ELSEWHERE)
def test_classes_keep_the_module_that_saved_settings_name(package, module, name):
    kind = getattr(module, name)
    assert getattr(import_module(kind.__module__), name) is kind
