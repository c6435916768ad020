"""Pictures as SVG text: lines over time, bands of modes, bars of distributions. No script, nothing fetched."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

WIDTH = 960
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 26, 26
INK, GRID = "#334155", "#e2e8f0"
PALETTE = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")
MOST_POINTS = 1200  # of one line: more than the pixels there are


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart. `x` seconds, `y` in the chart's unit; both of shape (n,). NaN breaks the line."""

    name: str
    x: F64
    y: F64
    colour: str = ""
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of time with a name and a colour, seconds."""

    name: str
    begin: float
    end: float
    colour: str


def line_chart(
    title: str,
    unit: str,
    lines: list[Line],
    *,
    height: int = 220,
    span: tuple[float, float],
    marks: list[float] = [],  # noqa: B006 - never changed
) -> str:
    """Lines over time.

    Args:
        title: What is shown.
        unit: Of the vertical axis.
        lines: What is drawn, in the order of the legend.
        height: Pixels.
        span: First and last second of the horizontal axis.
        marks: Seconds at which a thin vertical line stands.
    """
    finite = [line.y[np.isfinite(line.y)] for line in lines]
    values = np.concatenate([each for each in finite if each.size] or [np.zeros(1)])
    low, high = _padded(float(values.min()), float(values.max()))
    plot = _Plot(span, (low, high), height)
    body = [*plot.frame(title, unit)]
    body += [
        f'<line x1="{plot.x(mark):.1f}" x2="{plot.x(mark):.1f}" y1="{TOP}" y2="{height - BOTTOM}" class="mark"/>'
        for mark in marks
    ]
    for index, line in enumerate(lines):
        colour = line.colour or PALETTE[index % len(PALETTE)]
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        body += [
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.4"{dash} points="{points}"/>'
            for points in plot.runs(line)
        ]
    body += _legend([(line.name, line.colour or PALETTE[i % len(PALETTE)]) for i, line in enumerate(lines)])
    return _svg(title, height, body)


def band_chart(title: str, bands: list[Band], *, span: tuple[float, float], height: int = 84) -> str:
    """Named stretches of time on one row."""
    plot = _Plot(span, (0.0, 1.0), height)
    body = [f'<text x="{LEFT}" y="16" class="title">{escape(title)}</text>']
    for band in bands:
        begin, end = plot.x(band.begin), plot.x(band.end)
        body.append(
            f'<rect x="{begin:.1f}" y="{TOP}" width="{max(end - begin, 1):.1f}" height="{height - TOP - BOTTOM}" '
            f'fill="{band.colour}"><title>{escape(band.name)} {band.begin:.2f} to {band.end:.2f} s</title></rect>'
        )
    body += plot.time_axis()
    seen: dict[str, str] = {band.name: band.colour for band in bands}
    body += _legend(list(seen.items()))
    return _svg(title, height, body)


def bar_chart(title: str, unit: str, samples: F64, *, height: int = 200, limit: float | None = None) -> str:
    """How samples are distributed. Shape (n,); the last bar takes everything beyond the 99.9th percentile."""
    finite = samples[np.isfinite(samples)]
    if not finite.size:
        return ""
    top = max(float(np.percentile(finite, 99.9)), float(finite.min()) + 1e-9, 0.0 if limit is None else limit * 1.05)
    edges = np.linspace(min(0.0, float(finite.min())), top, 61)
    counts, _ = np.histogram(np.minimum(finite, top), bins=edges)
    plot = _Plot((float(edges[0]), float(edges[-1])), (0.0, float(counts.max())), height)
    body = [*plot.frame(title, "ticks", axis_unit=unit)]
    for count, begin, end in zip(counts, edges[:-1], edges[1:], strict=True):
        if count:
            body.append(
                f'<rect x="{plot.x(begin):.1f}" y="{plot.y(float(count)):.1f}" fill="{PALETTE[0]}" '
                f'width="{plot.x(end) - plot.x(begin) - 1:.1f}" '
                f'height="{plot.y(0.0) - plot.y(float(count)):.1f}"/>'
            )
    if limit is not None:
        body.append(
            f'<line x1="{plot.x(limit):.1f}" x2="{plot.x(limit):.1f}" y1="{TOP}" y2="{height - BOTTOM}" class="limit"/>'
        )
    return _svg(title, height, body)


class _Plot:
    """Maps values to pixels."""

    def __init__(self, span: tuple[float, float], values: tuple[float, float], height: int) -> None:
        self._x0, self._x1 = span if span[1] > span[0] else (span[0], span[0] + 1.0)
        self._y0, self._y1 = values if values[1] > values[0] else (values[0], values[0] + 1.0)
        self._height = height

    def x(self, value: float) -> float:
        return LEFT + (value - self._x0) / (self._x1 - self._x0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return self._height - BOTTOM - (value - self._y0) / (self._y1 - self._y0) * (self._height - TOP - BOTTOM)

    def frame(self, title: str, unit: str, *, axis_unit: str = "s") -> list[str]:
        shown = [
            f'<text x="{LEFT}" y="16" class="title">{escape(title)} <tspan class="unit">{escape(unit)}</tspan></text>'
        ]
        shown += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="tick" text-anchor="end">{value:g}</text>'
            for value in _ticks(self._y0, self._y1, 4)
            for y in [self.y(value)]
        ]
        return shown + self.time_axis(axis_unit)

    def time_axis(self, unit: str = "s") -> list[str]:
        return [
            f'<text x="{self.x(value):.1f}" y="{self._height - 8}" class="tick" text-anchor="middle">'
            f"{value:g} {unit}</text>"
            for value in _ticks(self._x0, self._x1, 8)
        ]

    def runs(self, line: Line) -> list[str]:
        """Point lists of the stretches between NaN, thinned to what can be seen (extremes kept)."""
        x, y = _thin(line.x, line.y)
        breaks = np.flatnonzero(~np.isfinite(y))
        found = []
        for piece in np.split(np.arange(y.size), breaks):
            kept = [index for index in piece if np.isfinite(y[index])]
            if len(kept) > 1:
                found.append(" ".join(f"{self.x(float(x[i])):.1f},{self.y(float(y[i])):.1f}" for i in kept))
        return found


def _thin(x: F64, y: F64) -> tuple[F64, F64]:
    """At most `MOST_POINTS` points: the lowest and the highest of each bucket, so that no spike disappears."""
    if y.size <= MOST_POINTS:
        return x, y
    kept: list[int] = []
    for piece in np.array_split(np.arange(y.size), MOST_POINTS // 2):
        values = y[piece]
        if np.all(np.isnan(values)):
            kept.append(int(piece[0]))
            continue
        kept += sorted({int(piece[np.nanargmin(values)]), int(piece[np.nanargmax(values)])})
    return x[kept], y[kept]


def _padded(low: float, high: float) -> tuple[float, float]:
    margin = (high - low) * 0.06 or max(abs(high) * 0.1, 1e-6)
    return low - margin, high + margin


def _ticks(low: float, high: float, count: int) -> list[float]:
    raw = (high - low) / count
    if raw <= 0:
        return [low]
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(float(factor * power) for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    first = np.ceil(low / step) * step
    return [float(round(value, 10)) for value in np.arange(first, high + step * 1e-6, step)]


def _legend(entries: list[tuple[str, str]]) -> list[str]:
    shown, x = [], float(WIDTH - RIGHT)
    for name, colour in reversed(entries):
        x -= 7.2 * len(name) + 8
        shown.append(f'<text x="{x:.0f}" y="16" class="legend">{escape(name)}</text>')
        x -= 14
        shown.append(f'<rect x="{x:.0f}" y="8" width="10" height="10" fill="{colour}"/>')
        x -= 8
    return shown


def _svg(title: str, height: int, body: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg">'
        + "".join(body)
        + "</svg>"
    )
