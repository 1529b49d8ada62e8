"""Words can be read on every ground of the pages, in light and dark."""

import re

import pytest

from precise_rag.viz.page import html_page

LEAST = 4.5
"""Level AA of the Web Content Accessibility Guidelines 2.2, criterion 1.4.3."""
SCHEMES = [
    dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", rules))
    for rules in re.findall(r":root \{(.*?)\}", html_page("x"), re.DOTALL)
]


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark"])
@pytest.mark.parametrize("words", ["ink", "soft", "keep", "accent"])
@pytest.mark.parametrize("ground", ["paper", "panel", "other"])
def test_words_stand_out(scheme: dict[str, str], words: str, ground: str) -> None:
    assert contrast(scheme[words], scheme[ground]) >= LEAST


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark"])
def test_marked_words_stand_out(scheme: dict[str, str]) -> None:
    assert contrast(scheme["ink"], scheme["mark"]) >= LEAST
