"""Rows as tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benches.rows import SHOWN, Row, Verdict

STYLES = {Verdict.REACHED: "green", Verdict.MISSED: "red", Verdict.NOT_EVALUATED: "yellow", Verdict.COMPARISON: "dim"}


def show(console: Console, title: str, rows: Sequence[Row]) -> None:
    """One benchmark."""
    table = Table(title=title, title_justify="left", title_style="bold", expand=False)
    table.add_column("what", overflow="fold")
    table.add_column("unit")
    for name in ("n", *(f"p{percent:g}" for percent in SHOWN), "largest", "x floor"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("target")
    table.add_column("verdict", overflow="fold")
    for row in rows:
        table.add_row(*cells(row), style="" if row.targets else "dim")
    console.print(table)


def cells(row: Row) -> list[str]:
    """One row. A withheld percentile shows a dash; the JSON says how many samples it would need."""
    numbers = [number(row.at(percent)) for percent in SHOWN] if row.percentiles else [number(row.value), "", "", ""]
    verdict = row.verdict.value
    style = STYLES[row.verdict]
    text = f"{verdict}: {row.reason}" if row.reason and verdict else verdict or row.reason
    return [
        f"{row.quantity} · {row.case}",
        "" if row.unit == "1" else row.unit,
        f"{row.n:,}",
        *numbers,
        number(row.largest) if row.percentiles else "",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        ", ".join(target.text() for target in row.targets),
        f"[{style}]{text}[/{style}]" if text else "",
    ]


def markdown(title: str, rows: Sequence[Row]) -> str:
    """The same for a document."""
    head = ["what", "unit", "n", *(f"p{percent:g}" for percent in SHOWN), "largest", "x floor", "target", "verdict"]
    lines = [f"### {title}", "", "| " + " | ".join(head) + " |", "|---|---|" + "---:|" * 7 + "---|---|"]
    for row in rows:
        plain = [cell.split("]", 1)[1].rsplit("[", 1)[0] if cell.startswith("[") else cell for cell in cells(row)]
        lines.append("| " + " | ".join(plain) + " |")
    return "\n".join(lines) + "\n"


def number(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}"
