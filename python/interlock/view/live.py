"""A running loop in words: what its shared memory shows, read once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock import _core
from interlock.view.percentiles import Percentile, percentiles

PERCENTS = (50.0, 95.0, 99.0, 99.9)
STILL_TICKS = 20  # so many ticks late, and at least so long, nobody would call it running
STILL_NS = 250_000_000
# What is shown of the durations, in this order, with what they mean.
DURATIONS = {
    "lateness_ns": "tick late",
    "work_ns": "work in a tick",
    "handoff_ns": "hand-off",
    "send_ns": "sending",
    "record_ns": "recording",
    "capture_to_sent_ns": "sensor to drive",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """One duration over its newest samples, microseconds; percentiles only where the samples support them."""

    name: str
    samples: int
    found: list[Percentile]
    longest: float | None

    def as_json(self) -> dict[str, Any]:
        """As plain data; None where a percentile is withheld."""
        shares = {f"p{each.percent:g}_us": each.value for each in self.found}
        return {"samples": self.samples, **shares, "longest_us": self.longest}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at a loop.

    Attributes:
        at_ns: When it was taken, monotonic ns.
        state: `running`, `still` (no tick for a while: suspended or starved), `ended`, `failed`, or `died` where the
            process was found gone.
        numbers: As `_core.Supervisor.status`.
        mode: Name.
        cause: Word of the code that led to it; empty for none.
        durations: In the order of `DURATIONS`.
        facts: What the run's maker knows of it.
        goal: What the operator asked for last.
        since_tick_ns: Since the last tick was due.
    """

    at_ns: int
    state: str
    numbers: Mapping[str, Any]
    mode: str
    cause: str
    durations: list[Duration]
    facts: Mapping[str, Any]
    goal: Mapping[str, Any]
    since_tick_ns: int

    @property
    def recording(self) -> Mapping[str, Any]:
        """The recording's numbers; empty where nothing is recorded."""
        return self.numbers.get("recording") or {}

    def as_json(self) -> dict[str, Any]:
        """As plain data, on the timeline of the recordings."""
        return {
            "epoch_ns": self.at_ns + epoch_minus_monotonic_ns(),
            "state": self.state,
            "since_tick_ms": self.since_tick_ns / 1e6,
            "mode": self.mode,
            "cause": self.cause,
            "durations": {each.name: each.as_json() for each in self.durations},
            "numbers": dict(self.numbers),
            "goal": dict(self.goal),
            "facts": dict(self.facts),
        }


def look(watched: _core.Watched) -> Look | None:
    """Reads everything once; None where the loop was stopped or killed in the middle of writing."""
    numbers = watched.look()
    if numbers is None:
        return None
    now_ns = _core.monotonic_ns()
    facts, goal = _object(watched.facts()), _object(watched.goal())
    since_ns = max(now_ns - numbers["at_ns"], 0) if numbers["at_ns"] else 0
    still_ns = max(STILL_TICKS * int(facts.get("tick_ns") or 0), STILL_NS)
    ended = "failed" if numbers["failed"] else "ended" if numbers["ended"] else ""
    shown = watched.durations()
    return Look(
        at_ns=now_ns,
        state=ended or ("still" if since_ns > still_ns else "running"),
        numbers=numbers,
        mode=_core.mode_names().get(numbers["mode"], f"mode {numbers['mode']}"),
        cause=_core.code_word(numbers["cause"]) if numbers["cause"] else "",
        durations=[_duration(name, shown[name]["samples"]) for name in DURATIONS],
        facts=facts,
        goal=goal,
        since_tick_ns=since_ns,
    )


def epoch_minus_monotonic_ns() -> int:
    """What makes nanoseconds since the epoch of monotonic ones."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _duration(name: str, samples_ns: Any) -> Duration:
    samples = samples_ns / 1e3
    longest = float(samples.max()) if samples.size else None
    return Duration(name=name, samples=int(samples.size), found=percentiles(samples, PERCENTS), longest=longest)


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
