"""The closed list of units and how each becomes SI."""

from __future__ import annotations

import math
from dataclasses import dataclass

DEG = math.pi / 180.0


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit.

    Attributes:
        quantity: What it measures; only units of one quantity convert into each other.
        si: SI value of one of it.
    """

    quantity: str
    si: float


UNITS: dict[str, Unit] = {
    "1": Unit("number", 1.0),
    "rad": Unit("angle", 1.0),
    "deg": Unit("angle", DEG),
    "percent": Unit("fraction", 0.01),
    "m": Unit("length", 1.0),
    "mm": Unit("length", 0.001),
    "rad/s": Unit("angular velocity", 1.0),
    "deg/s": Unit("angular velocity", DEG),
    "percent/s": Unit("fraction velocity", 0.01),
    "m/s": Unit("velocity", 1.0),
    "mm/s": Unit("velocity", 0.001),
    "rad/s^2": Unit("angular acceleration", 1.0),
    "deg/s^2": Unit("angular acceleration", DEG),
    "percent/s^2": Unit("fraction acceleration", 0.01),
    "m/s^2": Unit("acceleration", 1.0),
    "mm/s^2": Unit("acceleration", 0.001),
    "rad/s^3": Unit("angular jerk", 1.0),
    "deg/s^3": Unit("angular jerk", DEG),
    "percent/s^3": Unit("fraction jerk", 0.01),
    "m/s^3": Unit("jerk", 1.0),
    "mm/s^3": Unit("jerk", 0.001),
    "N*m": Unit("torque", 1.0),
    "N": Unit("force", 1.0),
    "N*m/rad": Unit("angular stiffness", 1.0),
    "N*m*s/rad": Unit("angular damping", 1.0),
    "N/m": Unit("stiffness", 1.0),
    "N*s/m": Unit("damping", 1.0),
    "s": Unit("time", 1.0),
    "ms": Unit("time", 1e-3),
    "Hz": Unit("rate", 1.0),
}

JOINT_POSITION_UNITS = ("rad", "deg", "percent", "m", "mm")

_POWERS = ("", "/s", "/s^2", "/s^3")


def per_time(unit: str, power: int) -> str:
    """The unit divided by seconds `power` times: `deg`, 2 -> `deg/s^2`."""
    return unit + _POWERS[power]


def si_per(unit: str) -> float:
    """SI value of one of the unit."""
    return UNITS[unit].si


def are_convertible(one: str, other: str) -> bool:
    """Whether both measure the same quantity."""
    return UNITS[one].quantity == UNITS[other].quantity
