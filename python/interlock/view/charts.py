"""Pictures: lines over time, bands of modes, bars of distributions. No script, nothing fetched.

Curves are SVG that stretches to the room there is; labels are text beside it, readable on a phone. Their look stands in
`page.CSS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from interlock.view.page import Html

F64 = NDArray[np.float64]

WIDTH = 1000  # of the drawing; it is stretched to the room there is
PALETTE = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")
LARGEST = 1e12  # beyond it a value is a mistake, and is left out
MOST_POINTS = 1200  # of one line: more than the pixels there are


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart. `x` seconds, `y` in the chart's unit; both of shape (n,). NaN breaks the line.

    Attributes:
        name: Shown in the legend; empty: not shown there.
        x: Horizontal.
        y: Vertical.
        colour: Of the stroke; empty: the next of the palette.
        dashed: Drawn in dashes.
        width: Of the stroke, pixels.
        steps: The value stands until the next one.
    """

    name: str
    x: F64
    y: F64
    colour: str = ""
    dashed: bool = False
    width: float = 1.4
    steps: bool = False


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
    lines: Sequence[Line],
    *,
    height: int = 200,
    span: tuple[float, float],
    marks: Sequence[float] = (),
    bands: Sequence[Band] = (),
    limits: Sequence[float] = (),
    include: Sequence[float] = (),
    least: float = 0.0,
    most_points: int = MOST_POINTS,
    legend: bool = True,
) -> Html:
    """Lines over time.

    Args:
        title: What is shown.
        unit: Of the vertical axis.
        lines: What is drawn, in the order of the legend.
        height: Pixels of the drawing.
        span: First and last second of the horizontal axis.
        marks: Seconds at which a thin vertical line stands.
        bands: Stretches of time shaded behind the lines.
        limits: Values at which a horizontal line stands, where they are near what is drawn.
        include: Values that the vertical axis reaches in any case.
        least: Smallest range of the vertical axis, so that noise does not look like motion.
        most_points: Points that a line is thinned to; its extremes stay.
        legend: Whether names are shown; small multiples share one.
    """
    lines = [replace(line, y=np.where(np.abs(line.y) < LARGEST, line.y, np.nan)) for line in lines]
    low, high = _range([*[line.y[_inside(line.x, *span)] for line in lines], np.array(include)], least)
    near = [each for each in limits if low - (high - low) * 0.3 <= each <= high + (high - low) * 0.3]
    low, high = _padded(min([low, *near]), max([high, *near]))
    plot = _Plot(span, (low, high), height)
    body = [plot.box(band) for band in bands]
    body += plot.grid()
    body += [plot.vertical(mark, "mark") for mark in marks if span[0] <= mark <= span[1]]
    body += [plot.horizontal(limit, "limit") for limit in near]
    colours = [line.colour or PALETTE[index % len(PALETTE)] for index, line in enumerate(lines)]
    for line, colour in zip(lines, colours, strict=True):
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        body += [
            f'<polyline stroke="{colour}" stroke-width="{line.width:g}"{dash} points="{points}"/>'
            for points in plot.runs(line, most_points)
        ]
    keys = [
        _key(line.name, colour, "dash" if line.dashed else "")
        for line, colour in zip(lines, colours, strict=True)
        if line.name and legend
    ]
    said = ", ".join(_said(line, unit) for line in lines if line.name)
    return plot.figure(title, unit, keys, body, alt=f"{title}: {said}" if said else title)


def band_chart(title: str, bands: Sequence[Band], *, span: tuple[float, float], height: int = 34) -> Html:
    """Named stretches of time on one row."""
    plot = _Plot(span, (0.0, 1.0), height)
    seen = {band.name: band.colour for band in bands}
    said = "; ".join(f"{band.name} {band.begin:.2f} to {band.end:.2f} s" for band in bands[:40])
    return plot.figure(
        title,
        "",
        [_key(name, colour, "box") for name, colour in seen.items()],
        [plot.box(band) for band in bands],
        alt=f"{title}: {said}",
        values=False,
    )


def bar_chart(
    title: str, unit: str, samples: F64, *, counted: str = "ticks", height: int = 150, limit: float | None = None
) -> Html:
    """How samples are distributed. Shape (n,); the last bar takes everything beyond the 99.9th percentile."""
    finite = samples[np.abs(samples) < LARGEST]
    if not finite.size:
        return Html()
    low, high = min(0.0, float(finite.min())), float(np.percentile(finite, 99.9))
    top = max(high, low + 1e-9, 0.0 if limit is None else limit * 1.05)
    edges = np.linspace(low, top, 61)
    counts, _ = np.histogram(np.minimum(finite, top), bins=edges)
    plot = _Plot((low, top), (0.0, float(counts.max())), height)
    body = plot.grid()
    for count, begin, end in zip(counts, edges[:-1], edges[1:], strict=True):
        if count:
            tall = max(plot.y(0.0) - plot.y(float(count)), 1.5)  # one sample among thousands stays visible
            body.append(
                f'<rect x="{plot.x(begin):.1f}" y="{plot.y(0.0) - tall:.1f}" fill="{PALETTE[0]}" '
                f'width="{max(plot.x(end) - plot.x(begin) - 1.5, 1):.1f}" height="{tall:.1f}"/>'
            )
    if limit is not None:
        body.append(plot.vertical(limit, "limit"))
    alt = f"{title}: {finite.size} samples from {finite.min():.3g} to {finite.max():.3g} {unit}"
    keys = [] if limit is None else [_key(f"limit {limit:g} {unit}", "var(--bad)", "dash")]
    said = f"number of {counted}"
    if finite.max() > top:
        said += f", the last bar up to {_rounded(float(finite.max()))} {unit}"
    return plot.figure(title, said, keys, body, alt=alt, axis_unit=unit)


class _Plot:
    """Maps values to the drawing and puts labels beside it."""

    def __init__(self, span: tuple[float, float], values: tuple[float, float], height: int) -> None:
        self._x0, self._x1 = span if span[1] > span[0] else (span[0], span[0] + 1.0)
        self._y0, self._y1 = values if values[1] > values[0] else (values[0], values[0] + 1.0)
        self._height = height

    def x(self, value: float) -> float:
        return (value - self._x0) / (self._x1 - self._x0) * WIDTH

    def y(self, value: float) -> float:
        return self._height - (value - self._y0) / (self._y1 - self._y0) * self._height

    def box(self, band: Band) -> str:
        begin, end = (min(max(self.x(each), 0.0), WIDTH) for each in (band.begin, band.end))
        if band.end < self._x0 or band.begin > self._x1:
            return ""
        return (
            f'<rect x="{begin:.1f}" y="0" width="{max(end - begin, 1.5):.1f}" height="{self._height}" '
            f'fill="{band.colour}"><title>{escape(band.name)} {band.begin:.2f} to {band.end:.2f} s</title></rect>'
        )

    def vertical(self, at: float, css: str) -> str:
        return f'<line x1="{self.x(at):.1f}" x2="{self.x(at):.1f}" y1="0" y2="{self._height}" class="{css}"/>'

    def horizontal(self, at: float, css: str) -> str:
        return f'<line x1="0" x2="{WIDTH}" y1="{self.y(at):.1f}" y2="{self.y(at):.1f}" class="{css}"/>'

    def grid(self) -> list[str]:
        return [self.horizontal(value, "gridline") for value in self._y_ticks()]

    def runs(self, line: Line, most_points: int) -> list[str]:
        """Point lists of the stretches between NaN, thinned to what can be seen (extremes kept)."""
        inside = _inside(line.x, self._x0, self._x1)
        x, y = _thin(line.x[inside], line.y[inside], most_points)
        if line.steps and x.size > 1:
            x, y = np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]
        found = []
        for piece in np.split(np.arange(y.size), np.flatnonzero(~np.isfinite(y))):
            kept = piece[np.isfinite(y[piece])]
            if kept.size > 1:
                found.append(" ".join(f"{self.x(float(x[i])):.1f},{self.y(float(y[i])):.1f}" for i in kept))
        return found

    def figure(
        self,
        title: str,
        unit: str,
        keys: Sequence[Html],
        body: Sequence[str],
        *,
        alt: str,
        axis_unit: str = "s",
        values: bool = True,
    ) -> Html:
        """The drawing with title, legend and the labels of both axes."""
        labels = [
            f'<span style="top:{self.y(value) / self._height:.2%}">{value:g}</span>'
            for value in (self._y_ticks() if values else [])
        ]
        times = [
            f'<span style="left:{self.x(value) / WIDTH:.2%}">{value:g} {escape(axis_unit)}</span>'
            for value in _ticks(self._x0, self._x1, 7)
        ]
        return Html(
            f'<figure class="chart"><figcaption><span><b>{escape(title)}</b> {escape(unit)}</span>{"".join(keys)}'
            '</figcaption><div class="plot">'
            f'<svg viewBox="0 0 {WIDTH} {self._height}" height="{self._height}" preserveAspectRatio="none" role="img" '
            f'aria-label="{escape(alt)}">{"".join(body)}</svg>'
            f'<div class="y" aria-hidden="true">{"".join(labels)}</div>'
            f'<div class="x" aria-hidden="true">{"".join(times)}</div></div></figure>'
        )

    def _y_ticks(self) -> list[float]:
        return _ticks(self._y0, self._y1, max(2, min(5, self._height // 32)))


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _key(name: str, colour: str, css: str) -> Html:
    return Html(f'<span class="key"><i class="{css}" style="border-color:{colour}"></i>{escape(name)}</span>')


def _said(line: Line, unit: str) -> str:
    finite = line.y[np.isfinite(line.y)]
    if not finite.size:
        return f"{line.name} never"
    return f"{line.name} from {finite.min():.3g} to {finite.max():.3g} {unit}".strip()


def _range(values: Sequence[F64], least: float) -> tuple[float, float]:
    finite = [each[np.isfinite(each)] for each in values]
    joined = np.concatenate([each for each in finite if each.size] or [np.zeros(1)])
    low, high = float(joined.min()), float(joined.max())
    lacking = max(least - (high - low), 0.0) / 2
    return low - lacking, high + lacking


def _padded(low: float, high: float) -> tuple[float, float]:
    margin = (high - low) * 0.06 or max(abs(high) * 0.1, 1e-6)
    return low - margin, high + margin


def _inside(x: F64, first: float, last: float) -> NDArray[np.intp]:
    """Indices inside a stretch of time and one beside it on each side, so that lines reach the edge."""
    found = np.flatnonzero((x >= first) & (x <= last))
    if not found.size or np.any(np.diff(x) < 0):
        return found
    return np.arange(max(int(found[0]) - 1, 0), min(int(found[-1]) + 2, x.size))


def _thin(x: F64, y: F64, most_points: int) -> tuple[F64, F64]:
    """At most about `most_points` points: lowest and highest of each bucket, and its gap where it has one."""
    if y.size <= most_points:
        return x, y
    kept: list[int] = []
    for piece in np.array_split(np.arange(y.size), max(most_points // 2, 1)):
        values = y[piece]
        gap = np.flatnonzero(np.isnan(values))
        chosen = {int(piece[gap[0]])} if gap.size else set()
        if gap.size < values.size:
            chosen |= {int(piece[np.nanargmin(values)]), int(piece[np.nanargmax(values)])}
        kept += sorted(chosen)
    return x[kept], y[kept]


def _ticks(low: float, high: float, count: int) -> list[float]:
    raw = (high - low) / count
    if not np.isfinite(raw) or raw <= 0:
        return [low]
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(float(factor * power) for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = np.ceil(low / step) * step
    ticks = np.arange(first, high + step * 1e-6, step)
    # A sum of steps is never exactly 0 or 0.3.
    return [float(f"{value:.6g}") if abs(value) > step * 1e-6 else 0.0 for value in ticks]
