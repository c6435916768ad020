"""A running loop on a terminal: one screen that says what it does, how well it keeps its times, and what acted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from interlock.view.live import DURATIONS, Look
from interlock.view.percentiles import Percentile
from interlock.view.report_words import clause

MODE_STYLES = {
    "Idle": "white on grey30",
    "Armed": "black on cyan",
    "Running": "black on green",
    "Takeover": "black on magenta",
    "Degraded": "black on yellow",
    "Stopping": "black on dark_orange",
    "Holding": "black on yellow",
    "Faulted": "white on red",
}
STATES = {
    "still": ("no tick for {since}: the supervisor is suspended or starved", "bold white on red"),
    "ended": ("the loop has ended", "bold"),
    "died": ("the supervisor died; this is the last that it showed", "bold white on red"),
    "failed": ("the loop was ended by a defect of the program", "bold white on red"),
}
NONE = "-"
MOST_CODES = 5
NARROW = 80  # columns below which all tables stand one under the other
WIDE = 160  # columns from which on they stand all side by side


def panel(look: Look, *, where: str, rates: Mapping[str, float], width: int) -> RenderableType:
    """The whole screen.

    Args:
        look: What the loop shows.
        where: Its folder.
        rates: Per second since a look before: `executed`; empty at the first look.
        width: Columns of the terminal.
    """
    times, loop, guard = _times(look), _loop(look, rates), _guard(look)
    if width < NARROW:
        tables: list[RenderableType] = [times, "", loop, "", guard]
    elif width < WIDE:
        tables = [times, "", _beside(loop, guard)]
    else:
        tables = [_beside(times, loop, guard)]
    whole = Group(_head(look), *tables, _feet(look))
    return Panel(whole, title=f"interlock watch · {where}", box=box.ROUNDED)


def _beside(*parts: RenderableType) -> Table:
    grid = Table.grid(padding=(0, 4))
    grid.add_row(*parts)
    return grid


def _head(look: Look) -> RenderableType:
    facts, text = look.facts, Text()
    text.append(f" {look.mode} ", style="dim" if look.state == "died" else MODE_STYLES.get(look.mode, "reverse"))
    if look.numbers["level"]:
        text.append(f" level {look.numbers['level']}", style="bold yellow")
    if look.state in STATES:
        said, style = STATES[look.state]
        text.append("  ")
        text.append(f" {said.format(since=_seconds(look.since_tick_ns))} ", style=style)
    # Idle before the first stop has no cause; a stop that is over keeps the one that led to it.
    if look.cause:
        text.append(f"  {clause(look.cause)} ({look.cause})", style="dim" if look.mode == "Running" else "bold")
    kind = "SIMULATION" if facts.get("simulated") else "ROBOT"
    dry = " · DRY, nothing is sent" if facts.get("dry") else ""
    text.append(f"\n{kind} {facts.get('robot', '?')} · policy {facts.get('policy', '?')}{dry}")
    if asked := _goal(look.goal):
        text.append(f"\ngoal {asked}")
    text.append("\n")
    return text


def _goal(goal: Mapping[str, Any]) -> str:
    velocity = goal.get("velocity")
    parts = [repr(goal["text"])] if goal.get("text") else []
    if isinstance(velocity, list):
        parts.append(" ".join(f"{float(each):g}" for each in velocity) + " (m/s, m/s, rad/s)")
    return " · ".join(parts)


def _times(look: Look) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("times, us", no_wrap=True)
    for column in ("p50", "p95", "p99", "p99.9", "longest", "of"):
        table.add_column(column, justify="right", no_wrap=True)
    budgets = {"capture_to_sent_ns": look.facts.get("latency_budget_ns"), "lateness_ns": look.facts.get("tick_ns")}
    for each in look.durations:
        told = budgets.get(each.name)
        most = told / 1e3 if isinstance(told, int) and told > 0 else float("inf")
        shares = [_share(share, each.samples, most) for share in each.found]
        longest = Text(NONE) if each.longest is None else _micro(each.longest, most)
        table.add_row(DURATIONS[each.name], *shares, longest, f"{each.samples:,}")
    return table


def _share(share: Percentile, samples: int, most: float) -> Text:
    """A percentile; where there are too few samples for it, how many it takes."""
    if share.value is None:
        return Text(f"n<{share.needed}" if samples else NONE, style="dim")
    return _micro(share.value, most)


def _micro(value: float, most: float) -> Text:
    """Microseconds; what is beyond its budget stands out."""
    shown = f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
    return Text(shown, style="bold yellow" if value > most else "")


def _pairs(title: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(title, no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    return table


def _loop(look: Look, rates: Mapping[str, float]) -> Table:
    numbers, table = look.numbers, _pairs("loop")
    missed = numbers["missed"]
    rate = f"{rates['executed']:,.0f}" if "executed" in rates else NONE
    table.add_row("ticks, per second", f"{numbers['executed']:,}, {rate}")
    table.add_row("missed", Text(f"{missed:,}", style="bold yellow" if missed else ""))
    table.add_row("chunks used, dropped", f"{numbers['accepted']:,}, {numbers['dropped']:,}")
    table.add_row("late answers", f"{numbers['late']:,}")
    table.add_row("actions left in the chunk", f"{numbers['actions_left']:,}")
    table.add_row("observations unanswered", f"{numbers['unanswered']:,}")
    waiting = f"{numbers['record_waiting']:,}, {numbers['record_chunks_waiting']:,}"
    table.add_row("ticks, chunks not written", waiting)
    return table


def _guard(look: Look) -> Table:
    numbers, table = look.numbers, _pairs("guard")
    now = ("passes", "limits", "REFUSES")[min(numbers["ruling"], 2)]
    style = ("green", "yellow", "bold red")[min(numbers["ruling"], 2)]
    table.add_row("now", Text(now, style=style))
    table.add_row("ticks limited, refused", f"{numbers['limited']:,}, {numbers['refused']:,}")
    acted = [*_counted(numbers, "refused_by", "refused"), *_counted(numbers, "limited_by", "limited")]
    acted += [*_counted(numbers, "lost_by", "lost"), *_counted(numbers, "dropped_by", "dropped")]
    shown = acted if len(acted) <= MOST_CODES else acted[: MOST_CODES - 1]
    for word, count in shown:
        table.add_row(f"  {word}", f"{count:,}")
    if len(acted) > len(shown):
        table.add_row(f"  and {len(acted) - len(shown)} more", "")
    return table


def _counted(numbers: Mapping[str, Any], name: str, what: str) -> list[tuple[str, int]]:
    found = sorted(numbers[name].items(), key=lambda each: -each[1])
    return [(f"{what}: {word}", count) for word, count in found]


def _feet(look: Look) -> RenderableType:
    facts, numbers, text = look.facts, look.numbers, Text()
    told = facts.get("granted")
    granted: Mapping[str, Any] = told if isinstance(told, dict) else {}
    for role in ("worker", "driver"):
        is_alive = bool(numbers[f"{role}_alive"])
        text.append(f"{role} {facts.get(f'{role}_pid', '?')} ")
        if look.state == "died":
            text.append("was there" if is_alive else "was gone", style="dim")
        else:
            text.append("alive" if is_alive else "NOT THERE", style="green" if is_alive else "bold red")
        text.append(" · ")
    memory = "locked" if granted.get("memory_locked") else "not locked"
    text.append(f"{granted.get('scheduler', '?')} {granted.get('priority') or ''}".rstrip() + f", memory {memory}\n")
    recorded = look.recording
    if not recorded:
        text.append("not recorded", style="yellow")
        return text
    text.append(f"recording {recorded['bytes'] / 1e6:,.1f} MB, {recorded['bytes_per_s'] / 1e3:,.0f} kB/s")
    lost = {name: recorded[f"{name}_dropped"] for name in ("ticks", "chunks", "logs", "images")}
    said = ", ".join(f"{count:,} {name}" for name, count in lost.items() if count)
    text.append(f" · dropped {said or 'nothing'}", style="bold yellow" if lost["ticks"] or lost["chunks"] else "")
    if recorded["ended"]:
        text.append(" · ENDED EARLY: no room, or writing failed", style="bold white on red")
    elif recorded["images_ended"]:
        text.append(" · room runs low: no more images", style="bold yellow")
    return text


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:,.1f} s"
