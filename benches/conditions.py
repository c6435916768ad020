"""What belongs to every number: what was granted, what was counted, what the floor and the machine did meanwhile."""

from __future__ import annotations

from typing import Any

from benches.floor import Floor
from benches.job import Measured


def conditions_of(measured: Measured, floor: Floor | None = None) -> dict[str, Any]:
    """For a row's `conditions`."""
    facts = measured.facts
    found: dict[str, Any] = {
        "scheduler_asked": measured.job.scheduler,
        "granted": facts.get("granted", {}),
        "rounds": facts.get("rounds", 1),
        "seconds_per_round": measured.job.seconds,
        "counters": facts.get("counters", {}),
        "load": facts.get("load", []),
    }
    if floor is not None:
        unrest = floor.unrest()
        found["floor_us"] = {
            "n": int(floor.samples.size),
            **{f"p{percent:g}": _us(floor.at(percent)) for percent in (50.0, 99.0, 99.9)},
            "crowding": None if floor.crowding is None else round(floor.crowding, 3),
            "before_over_after": None if unrest is None else {"percent": unrest[0], "ratio": round(unrest[1], 2)},
        }
    return found


def scheduler_of(measured: Measured) -> str:
    """The scheduler that was granted, for a row's words."""
    granted = measured.facts.get("granted", {})
    name, priority = str(granted.get("scheduler", "")).upper(), granted.get("priority", 0)
    return f"{name} {priority}" if priority else name


def problems_of(measured: Measured, *, needs_scheduler: bool = False) -> tuple[str, ...]:
    """Why the numbers must not be judged; empty where they may.

    Args:
        measured: The measurement.
        needs_scheduler: The row is about the scheduler that was asked for.
    """
    found = list(measured.facts.get("problems", []))
    if not needs_scheduler:
        return tuple(found)
    wanted = "fifo" if measured.job.priority else "other"
    granted = measured.facts.get("granted", {})
    if granted and granted.get("scheduler") != wanted:
        refused = ", ".join(map(str, granted.get("refused", [])))
        found.append(f"{measured.job.scheduler} not granted: {refused or granted.get('scheduler')}")
    return tuple(found)


def _us(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / 1e3, 2)
