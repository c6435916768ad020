"""The scripted expert: minimum-jerk joint trajectories to the top of a block."""

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from .kinematics import fingertip, reach

UP = np.array([0.0, 0.0, 1.0])
TOUCH_M = 0.032  # fingertip centre above the block's centre: half edge 22 mm, tip 8 mm, 2 mm of air
HOVER_M = 0.085  # way point above the block's centre: clear of the other blocks
LIFT_TO_M = 0.11  # fingertip height before it crosses the table
NEAR_M = 0.05  # horizontally; nearer than this the arm goes straight down

CRUISE_RAD_S = 0.5  # mean speed of the joint that moves most
SHORTEST_S = 0.60  # of a segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Piecewise quintic in joint space that ends at rest.

    Attributes:
        knots_s: Start times of the segments and the end. Shape (segments + 1,).
        coefficients: Polynomial in seconds since the segment began, lowest power first. Shape (segments, 6, joints).
    """

    knots_s: NDArray[np.float64]
    coefficients: NDArray[np.float64]

    @property
    def duration_s(self) -> float:
        """Time until the arm is at rest."""
        return float(self.knots_s[-1])

    def at(self, time_s: float, order: int = 0) -> NDArray[np.float64]:
        """Position, or its derivative of some order, held after the end. Shape (joints,), rad (per s^order)."""
        clamped = min(max(time_s, 0.0), self.duration_s)
        segment = min(int(np.searchsorted(self.knots_s, clamped, side="right")) - 1, len(self.coefficients) - 1)
        row = _powers(clamped - self.knots_s[segment], order)
        return np.asarray(row @ self.coefficients[segment], dtype=np.float64)


def minimum_jerk(
    points_rad: NDArray[np.float64],
    segments_s: NDArray[np.float64],
    velocity_rad_s: NDArray[np.float64],
    acceleration_rad_s2: NDArray[np.float64],
) -> Trajectory:
    """Fits the minimum-jerk curve through points at given times.

    Args:
        points_rad: The present position, way points and goal. Shape (segments + 1, joints).
        segments_s: Time between neighbouring points. Shape (segments,).
        velocity_rad_s: At the start; zero at the end. Shape (joints,).
        acceleration_rad_s2: At the start; zero at the end. Shape (joints,).
    """
    count = len(segments_s)
    rows: list[NDArray[np.float64]] = []
    values: list[NDArray[np.float64]] = []
    zero = np.zeros(points_rad.shape[1])

    def add(value: NDArray[np.float64], *terms: tuple[int, float, int, float]) -> None:
        row = np.zeros(6 * count)
        for segment, time_s, order, sign in terms:
            row[6 * segment : 6 * segment + 6] += sign * _powers(time_s, order)
        rows.append(row)
        values.append(value)

    add(velocity_rad_s, (0, 0.0, 1, 1.0))
    add(acceleration_rad_s2, (0, 0.0, 2, 1.0))
    for segment, length_s in enumerate(segments_s):
        add(points_rad[segment], (segment, 0.0, 0, 1.0))
        add(points_rad[segment + 1], (segment, length_s, 0, 1.0))
        if segment + 1 < count:
            for order in range(1, 5):
                add(zero, (segment, length_s, order, 1.0), (segment + 1, 0.0, order, -1.0))
    add(zero, (count - 1, segments_s[-1], 1, 1.0))
    add(zero, (count - 1, segments_s[-1], 2, 1.0))
    solution = np.linalg.solve(np.stack(rows), np.stack(values))
    return Trajectory(
        knots_s=np.concatenate([[0.0], np.cumsum(segments_s)]),
        coefficients=solution.reshape(count, 6, -1),
    )


def plan(
    position_rad: NDArray[np.float64],
    velocity_rad_s: NDArray[np.float64],
    acceleration_rad_s2: NDArray[np.float64],
    block_m: NDArray[np.float64],
) -> Trajectory:
    """Plans from a state of the arm to the top of a block: lift if low and far, cross, go down.

    Args:
        position_rad: Where the arm's target is now. Shape (4,).
        velocity_rad_s: Of the target. Shape (4,).
        acceleration_rad_s2: Of the target. Shape (4,).
        block_m: Centre of the block. Shape (3,).
    """
    tip = fingertip(position_rad)
    points = [position_rad]
    if float(np.linalg.norm(tip[:2] - block_m[:2])) > NEAR_M:
        if tip[2] < LIFT_TO_M - 0.02:
            radius_scale = min(1.0, 0.33 / float(np.hypot(tip[0], tip[1])))
            points.append(reach(np.array([tip[0] * radius_scale, tip[1] * radius_scale, LIFT_TO_M])))
        points.append(reach(block_m + HOVER_M * UP))
    points.append(reach(block_m + TOUCH_M * UP))
    stacked = np.stack(points)
    spans = np.abs(np.diff(stacked, axis=0)).max(axis=1)
    return minimum_jerk(stacked, np.maximum(spans / CRUISE_RAD_S, SHORTEST_S), velocity_rad_s, acceleration_rad_s2)


def _powers(time_s: float, order: int) -> NDArray[np.float64]:
    """Factors of the coefficients in the derivative of some order. Shape (6,)."""
    row = np.zeros(6)
    for power in range(order, 6):
        row[power] = factorial(power) / factorial(power - order) * time_s ** (power - order)
    return row
