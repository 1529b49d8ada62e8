"""What the arrays of each kind of index must look like, so that a damaged or foreign one is not searched."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.groups import Groups

_FORMS = {
    "spans": ("i", 2),
    "n_tokens": ("i", 1),
    "passage_spans": ("i", 2),
    "surroundings": ("i", 1),
    "vectors": ("fi", 2),
    "vector_scales": ("f", 1),
    "context": ("f", 2),
    "words.values": ("i", 1),
    "words.lengths": ("i", 1),
    "heading_vectors.values": ("f", 2),
    "heading_vectors.lengths": ("i", 1),
    "heading_words.values": ("i", 1),
    "heading_words.lengths": ("i", 1),
    "pieces.values": ("i", 1),
    "pieces.lengths": ("i", 1),
    "faiss": ("u", 1),
    "faiss.made": ("u", 1),
    "above.values": ("u", 1),
    "above.ends": ("i", 1),
}
"""Kinds of number and number of axes of each array, by its name."""
_MATRIX_PARTS = ("rows", "counts", "indptr", "lengths")
_EXTRA_FORMS = {
    "rows": ("i", 1),
    "counts": ("u", 1),
    "indptr": ("i", 1),
    "lengths": ("f", 1),
    "norms": ("f", 1),
}
_KINDS = ("dense", "faiss", "bm25", "sentence-context", "word-sentence", "hybrid")
"""The kinds whose settings and columns are known here; an index class of the user's has others."""
_STOP_WORDS = re.compile(r"english|none|nltk:[a-z]+")


def check_collection(collection: Collection) -> None:
    """Raises ValueError if offsets, columns and documents do not belong together."""
    offsets, columns = collection.offsets, collection.columns
    _check(offsets.dtype.kind == "i" and offsets.ndim == 1, "offsets are not whole numbers")
    _check(len(offsets) == len(collection.documents) + 1, "offsets and documents differ in number")
    _check(offsets[0] == 0 and _ascends(offsets), "offsets do not ascend from 0")
    n_rows = len(collection)
    _check(not n_rows or {"spans", "n_tokens"} <= columns.keys(), "columns spans and n_tokens are missing")
    for name, column in columns.items():
        stem, _, part = name.rpartition(".")
        expected = n_rows
        if part == "values":
            _check(f"{stem}.lengths" in columns, f"column {name!r} has no lengths")
            lengths = columns[f"{stem}.lengths"]
            _check(
                lengths.dtype.kind in "iu" and _least(lengths) >= 0, f"{stem}.lengths has negative numbers"
            )
            expected = int(lengths.sum(dtype=np.int64))
        _check(
            column.ndim >= 1 and len(column) == expected,
            f"column {name!r} has {len(column)} rows, not {expected}",
        )
    if not n_rows:
        return
    for name in ("spans", "n_tokens", "passage_spans"):
        if name in columns:
            _check_form(name, columns[name])
            _check(_least(columns[name]) >= 0, f"column {name!r} has negative numbers")
    lengths = np.array([len(document.text) for document in collection.documents.values()])
    limits = np.repeat(lengths, np.diff(offsets))
    for name in ("spans", "passage_spans"):
        if name in columns:
            _check(columns[name].shape[1] == 2, f"column {name!r} does not hold pairs")
            _check(bool((columns[name].max(axis=1) <= limits).all()), f"column {name!r} leaves the text")


def check_finite(columns: Columns) -> None:
    """Raises ValueError if a column has a number that is not finite."""
    for name, column in columns.items():
        finite = column.dtype.kind != "f" or np.isfinite(column).all()
        _check(finite, f"column {name!r} holds numbers that are not finite")


def check_index(kind: str, settings: Any, n_words: int, collection: Collection, extras: Columns) -> None:
    """Raises ValueError if an index of this kind cannot search a segment with these arrays.

    n_words: size of its vocabulary.
    """
    if kind not in _KINDS:
        return
    columns = collection.columns
    if columns:
        expected = _columns(kind, settings)
        _check(expected == columns.keys(), f"columns are {sorted(columns)}, {sorted(expected)} expected")
        for name, column in columns.items():
            _check_form(name, column)
        _check_vectors(columns, getattr(settings, "precision", ""))
        for name in ("words.values", "heading_words.values"):
            if name in columns:
                _check_numbers(name, columns[name], 0, n_words)
        if "heading_vectors.lengths" in columns:
            _check_headings(collection)
        if "pieces.values" in columns:
            _check_numbers("pieces.values", columns["pieces.values"], 0, np.iinfo(np.int32).max)
    _check_extras(kind, settings, n_words, collection, extras)


def read_vocabulary(words: object) -> list[str]:
    """Return a saved vocabulary. Raises ValueError if it is not a list of different words."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("the vocabulary is not a list of words")
    _check(len(set(words)) == len(words), "the vocabulary holds a word twice")
    return words


def check_settings(kind: str, settings_type: type, values: Mapping[str, Any]) -> None:
    """Raises ValueError if saved settings are not those of this type, or have values of other types."""
    if kind not in _KINDS:
        return
    types = get_type_hints(settings_type)
    known = {field.name for field in fields(settings_type)}
    _check(values.keys() <= known, f"unknown settings {sorted(values.keys() - known)}")
    for name, value in values.items():
        is_text = not isinstance(value, str) or value.isprintable()
        _check(is_text and _is_a(value, types[name]), f"the setting {name!r} is {value!r}")
    stop_words = values.get("stop_words", "none")
    _check(
        not isinstance(stop_words, str) or _STOP_WORDS.fullmatch(stop_words) is not None,
        f"the setting 'stop_words' is {stop_words!r}",
    )


def _is_a(value: object, expected: Any) -> bool:
    """Whether a value from JSON may stand for an annotation."""
    origin, parts = get_origin(expected), get_args(expected)
    if origin in (Union, UnionType):
        return any(_is_a(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin is tuple:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if expected is float:
        return type(value) in (int, float)
    return type(value) is expected if expected in (str, int, bool, NoneType) else False


def _columns(kind: str, settings: Any) -> set[str]:
    names = {"spans", "n_tokens"}
    if kind != "bm25":
        names |= {"vectors", "vector_scales"} if settings.precision == "int8" else {"vectors"}
    if kind in ("bm25", "hybrid"):
        names |= {"words.values", "words.lengths"}
    if kind == "word-sentence":
        names |= {"pieces.values", "pieces.lengths"}
    if kind in ("hybrid", "sentence-context"):
        names |= {"passage_spans"}
    if kind == "hybrid" and settings.surroundings is not None:
        names |= {"surroundings"}
    if kind == "hybrid" and settings.headings:
        names |= {f"heading_{what}.{part}" for what in ("vectors", "words") for part in ("values", "lengths")}
    if kind == "sentence-context" and settings.context == "encode":
        names |= {"context"}
    return names


def _check_vectors(columns: Columns, precision: str) -> None:
    if "vectors" not in columns:
        return
    vectors = columns["vectors"]
    _check(vectors.dtype == np.dtype(precision), f"vectors are {vectors.dtype}, not {precision}")
    _check(vectors.shape[1] > 0, "vectors have no dimensions")
    if "context" in columns:
        _check(columns["context"].shape == vectors.shape, "context and vectors differ in shape")


def _check_headings(collection: Collection) -> None:
    columns, begins = collection.columns, collection.columns["heading_vectors.lengths"]
    _check_numbers("heading_vectors.lengths", begins, 0, 2)
    first = collection.offsets[:-1][np.diff(collection.offsets) > 0]
    _check(bool(np.all(begins[first] == 1)), "a document begins without a heading")
    _check(not columns["heading_words.lengths"][begins == 0].any(), "a row has words of no heading")
    same = columns["heading_vectors.values"].shape[1] == columns["vectors"].shape[1]
    _check(same, "headings and vectors differ in shape")


def _check_extras(kind: str, settings: Any, n_words: int, collection: Collection, extras: Columns) -> None:
    left = set(extras)
    for name, groups in _scales(kind, settings, collection):
        parts = {f"{name}.{part}" for part in _MATRIX_PARTS}
        if present := parts & left:
            _check(present == parts, f"a part of the matrix {name!r} is missing")
            _check_matrix(name, extras, n_words, len(collection) if groups is None else len(groups.starts))
            left -= parts
        norms = f"means{name.removeprefix('level')}.norms"
        if groups is not None and norms in left:
            _check_form(norms, extras[norms])
            _check(len(extras[norms]) == len(groups.starts), f"{norms} has the wrong length")
            _check(_least(extras[norms]) > 0, f"{norms} has numbers that are not positive")
            left.remove(norms)
    if rough := {"rough.codes", "rough.scales"} & left:
        _check(len(rough) == 2, "a part of the rough vectors is missing")
        _check_rough(collection.columns, extras["rough.codes"], extras["rough.scales"])
        left -= rough
    if above := {"above.values", "above.ends"} & left:
        _check(len(above) == 2, "a part of the headings' texts is missing")
        _check_above(collection.columns, extras["above.values"], extras["above.ends"])
        left -= above
    for name in {"faiss", "faiss.made"} & left:
        _check("vectors" in collection.columns, "a faiss index without vectors")
        _check_form(name, extras[name])
        left.remove(name)
    _check(not left, f"unknown arrays {sorted(left)}")


def _check_rough(columns: Columns, codes: npt.NDArray[Any], scales: npt.NDArray[Any]) -> None:
    expected = columns["vectors"].shape if "vectors" in columns else (0, 0)
    _check(codes.dtype == np.int8 and codes.shape == expected, "rough.codes are not those of the vectors")
    _check(scales.dtype == np.float32 and scales.shape == expected[:1], "rough.scales have the wrong form")
    _check(_least(scales) >= 0, "rough.scales has negative numbers")


def _check_above(columns: Columns, values: npt.NDArray[Any], ends: npt.NDArray[Any]) -> None:
    _check_form("above.values", values)
    _check_form("above.ends", ends)
    begins = columns.get("heading_vectors.lengths", np.zeros(0, dtype=np.int32))
    _check(len(ends) == np.count_nonzero(begins), "above.ends are not those of the headings")
    _check(not len(ends) or (ends[0] >= 0 and _ascends(ends)), "above.ends do not ascend from 0")
    _check((ends[-1] if len(ends) else 0) == len(values), "above.values have the wrong length")


def _scales(kind: str, settings: Any, collection: Collection) -> Iterable[tuple[str, Groups | None]]:
    """The BM25 matrices of a kind, with the groups of rows that each one has."""
    if not len(collection):
        return
    if kind == "bm25":
        yield "chunks", None
    if kind == "hybrid":
        yield "sentences", None
        owners = collection.owners(np.arange(len(collection)))
        for place, name in enumerate(n for n in ("passage_spans", "surroundings") if n in collection.columns):
            yield f"level{place}", Groups.by_change(collection.columns[name], owners)


def _check_matrix(name: str, extras: Columns, n_words: int, n_rows: int) -> None:
    rows, counts, indptr, lengths = (extras[f"{name}.{part}"] for part in _MATRIX_PARTS)
    for part in _MATRIX_PARTS:
        _check_form(f"{name}.{part}", extras[f"{name}.{part}"])
    _check(len(indptr) == n_words + 1, f"{name}.indptr has {len(indptr)} numbers for {n_words} words")
    _check(indptr[0] == 0 and _ascends(indptr), f"{name}.indptr does not ascend from 0")
    _check(indptr[-1] == len(rows) == len(counts), f"{name}.rows and {name}.counts have the wrong length")
    _check(len(lengths) == n_rows and _least(lengths) >= 0, f"{name}.lengths are not those of its texts")
    _check_numbers(f"{name}.rows", rows, 0, n_rows)


def _check_form(name: str, array: npt.NDArray[Any]) -> None:
    kinds, axes = _FORMS.get(name) or _EXTRA_FORMS[name.rpartition(".")[2]]
    _check(
        array.dtype.kind in kinds and array.ndim == axes, f"{name} is {array.dtype} with {array.ndim} axes"
    )


def _check_numbers(name: str, array: npt.NDArray[Any], least: int, limit: int) -> None:
    in_range = not array.size or (int(array.min()) >= least and int(array.max()) < limit)
    _check(in_range, f"{name} holds numbers outside {least} to {limit}")


def _least(array: npt.NDArray[Any]) -> Any:
    return array.min() if array.size else 1


def _ascends(numbers: npt.NDArray[Any]) -> bool:
    return bool((numbers[1:] >= numbers[:-1]).all())


def _check(holds: object, message: str) -> None:
    if not holds:
        raise ValueError(message)
