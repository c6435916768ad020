"""Puts the tables of one run into a document, between two marks, so that numbers and their conditions travel together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benches.rows import Row, Verdict
from benches.table import cells, markdown, number

BEGIN, END = "<!-- begin: written by python -m benches --document -->", "<!-- end -->"
HEAD = "| what | target | measured | x floor | verdict |\n|---|---|---|---:|---|"


def has_marks(path: Path) -> bool:
    """Whether there is a place for tables."""
    return path.is_file() and all(mark in path.read_text(encoding="utf-8") for mark in (BEGIN, END))


def put(path: Path, text: str) -> None:
    """Replaces what stands between the marks."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def render(document: dict[str, Any], measured: Sequence[tuple[str, Sequence[Row]]]) -> str:
    """Conditions, then every target with what was measured, then all tables. `measured`: title and rows."""
    machine, environment = document["machine"], document["environment"]
    packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items())
    virtual = ", virtual machine" if environment["virtual_machine"] else ""
    host = (
        f"{environment['cores_allowed']} cores of {environment['cpu']}{virtual}, kernel {environment['kernel']} "
        f"({environment['kernel_preemption']}), Python {environment['python']}, {packages}. "
        f"Load average {machine['load_average_before']} before, {machine['load_average_after']} after; "
        f"{machine['stolen_s']} s taken by the hypervisor."
    )
    lines = [f"Measured {document['began'][:10]} with `{' '.join(document['command'])}`.", host, "", HEAD]
    lines += [_summary(row) for _, rows in measured for row in rows if row.targets]
    lines.append("")
    lines += [markdown(title[:1].upper() + title[1:], rows) for title, rows in measured if rows]
    return "\n".join(lines).rstrip()


def _summary(row: Row) -> str:
    if row.percentiles:
        shown = [f"{name} {number(row.at(percent))}" for name, percent in (("p50", 50.0), ("p99", 99.0))]
    else:
        shown = [number(row.value)]
    measured = ", ".join(shown) if row.n else "-"
    unit = f" {row.unit}" if row.unit != "1" and row.n else ""
    targets = ", ".join(target.text() for target in row.targets)
    verdict = f"**{row.verdict.value}**" if row.verdict is Verdict.MISSED else row.verdict.value
    ratio = cells(row)[-3]
    reason = f": {row.reason}" if row.reason else ""
    return f"| {row.quantity} · {row.case} | {targets} | {measured}{unit} | {ratio} | {verdict}{reason} |"
