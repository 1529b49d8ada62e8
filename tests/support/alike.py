"""Comparison of nested results whose floats may differ in their last digits."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from pydantic import BaseModel


def assert_alike(found: Any, expected: Any, where: str = "result") -> None:
    """Compare models, dataclasses, mappings and sequences part by part, and floats approximately."""
    found, expected = _parts(found), _parts(expected)
    if isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-6), where
    elif isinstance(expected, Mapping):
        assert set(found) == set(expected), where
        for key in expected:
            assert_alike(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_alike(one, other, f"{where}[{i}]")
    else:
        assert found == expected, where


def _parts(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value
