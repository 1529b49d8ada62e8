"""Small line charts side by side as one SVG, without a plotting library."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from precise_rag.viz.charts import COLOURS

Lines = Mapping[str, Sequence[tuple[float, float]]]
_WIDTH, _HEIGHT, _COLUMNS, _PAD = 250, 190, 3, 34


def panels(charts: Mapping[str, Lines], *, x_label: str, y_label: str, logarithmic: bool = False) -> str:
    """Draw a chart for each name, from 0 to 100 %, with common colours and one legend. Returns the SVG."""
    names = list(dict.fromkeys(name for lines in charts.values() for name in lines))
    rows = -(-len(charts) // _COLUMNS)
    legend = 26 + 15 * len(names)
    width, height = _WIDTH * _COLUMNS, _HEIGHT * rows + legend
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(y_label)} by {escape(x_label)}"><style>text{{font:11px sans-serif;fill:#555}}'
        ".grid{stroke:#e3e5ea}.title{font-weight:bold}polyline{fill:none;stroke-width:1.8}</style>"
    ]
    for place, (title, lines) in enumerate(charts.items()):
        x, y = _WIDTH * (place % _COLUMNS), _HEIGHT * (place // _COLUMNS)
        parts.append(f'<g transform="translate({x} {y})">{_panel(title, lines, names, logarithmic)}</g>')
    top = _HEIGHT * rows + 12
    parts.append(f'<text x="{_PAD}" y="{top}">{escape(y_label)} by {escape(x_label)}</text>')
    for i, name in enumerate(names):
        y = top + 15 * (i + 1)
        colour = COLOURS[i % len(COLOURS)]
        parts.append(
            f'<path d="M{_PAD} {y - 4}h18" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{_PAD + 24}" y="{y}">{escape(name)}</text>'
        )
    return "".join([*parts, "</svg>\n"])


def _panel(title: str, lines: Lines, names: Sequence[str], logarithmic: bool) -> str:
    xs = sorted({x for line in lines.values() for x, _ in line})
    scale = math.log if logarithmic else float
    span = scale(xs[-1]) - scale(xs[0])

    def px(x: float) -> float:
        return _PAD + (_WIDTH - _PAD - 16) * (scale(x) - scale(xs[0])) / span

    def py(y: float) -> float:
        return 20 + (_HEIGHT - 50) * (100 - y) / 100

    parts = [f'<text class="title" x="{_PAD}" y="13">{escape(title)}</text>']
    for y in (0, 50, 100):
        parts.append(f'<line class="grid" x1="{_PAD}" x2="{_WIDTH - 16}" y1="{py(y):.0f}" y2="{py(y):.0f}"/>')
        parts.append(f'<text x="{_PAD - 5}" y="{py(y) + 4:.0f}" text-anchor="end">{y}</text>')
    parts += [f'<text x="{px(x):.0f}" y="{_HEIGHT - 14}" text-anchor="middle">{x:g}</text>' for x in xs]
    for name, line in lines.items():
        points = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in line)
        parts.append(f'<polyline points="{points}" stroke="{COLOURS[names.index(name) % len(COLOURS)]}"/>')
    return "".join(parts)
