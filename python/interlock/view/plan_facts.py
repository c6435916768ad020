"""What a report reads from a recorded plan, which may come from a newer version: what is not understood is absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.view.recording import Recording

LARGEST = 10**15  # ns, ticks or rows: beyond it a number is a mistake


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def timing(recording: Recording, key: str) -> int:
    """A whole number of the plan's timing; 0 where it is absent."""
    value = mapping(recording.plan.get("timing")).get(key)
    return value if isinstance(value, int) and 0 <= value <= LARGEST else 0


def position_limits(recording: Recording) -> list[list[float]]:
    """Lower and upper position limit of every joint, rad; empty where a joint has none."""
    ranges = mapping(recording.plan.get("limits")).get("pos")
    if not isinstance(ranges, list) or len(ranges) != len(recording.joints):
        return [[] for _ in recording.joints]
    found = [[mapping(each).get(side) for side in ("lo", "hi")] for each in ranges]
    return [[float(side) for side in each if isinstance(side, (int, float))] for each in found]


def has_cameras(recording: Recording) -> bool:
    """Whether the robot was bound with a camera."""
    return bool(recording.plan.get("cameras"))
