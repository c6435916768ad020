"""A driver talks to one kind of robot. It lives in a process of its own and is stepped by the driver host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


class CommandKind(IntEnum):
    """Kinds of command on the wire."""

    POSITION = 0
    POSITION_PD = 1
    VELOCITY = 2
    TORQUE = 3
    OFF = 4


def _nans(size: int) -> F64:
    return np.full(size, np.nan)


@dataclass(slots=True)
class State:
    """One measurement, in the ROBOT's units and joint order; NaN where the robot does not give a quantity.

    Attributes:
        joints: Number of joints `n`.
        capture_ns: When it was measured, monotonic clock.
        pos: Joint positions. Shape (n,).
        vel: Joint velocities. Shape (n,).
        torque: Joint torques, N*m. Shape (n,).
        quat_wxyz: Base orientation. Shape (4,).
        ang_vel: Base angular velocity in the base frame, rad/s. Shape (3,).
        lin_vel: Base linear velocity in the base frame, m/s. Shape (3,).
    """

    joints: int
    capture_ns: int = 0
    pos: F64 = field(init=False)
    vel: F64 = field(init=False)
    torque: F64 = field(init=False)
    quat_wxyz: F64 = field(init=False)
    ang_vel: F64 = field(init=False)
    lin_vel: F64 = field(init=False)
    flat: F64 = field(init=False)

    def __post_init__(self) -> None:
        n = self.joints
        self.flat = _nans(3 * n + 10)
        self.pos, self.vel, self.torque = self.flat[:n], self.flat[n : 2 * n], self.flat[2 * n : 3 * n]
        base = self.flat[3 * n :]
        self.quat_wxyz, self.ang_vel, self.lin_vel = base[:4], base[4:7], base[7:]
        self.quat_wxyz[:] = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Command:
    """One command, in the ROBOT's units and joint order. Arrays have shape (n,).

    Attributes:
        kind: What `target`, `velocity` and `torque` mean.
        running: The policy is in charge (or a behaviour that moves the robot), not a robot being made ready.
        target: Position target; for `VELOCITY` unused.
        velocity: Velocity or velocity feed-forward.
        torque: Torque or torque feed-forward, N*m.
        kp: N*m/rad.
        kd: N*m*s/rad.
    """

    kind: CommandKind
    running: bool
    target: F64
    velocity: F64
    torque: F64
    kp: F64
    kd: F64


@dataclass(frozen=True, slots=True)
class Image:
    """One picture of one camera.

    Attributes:
        camera: Index in the robot file's `cameras`.
        capture_ns: When it was taken, monotonic clock.
        pixels: Rows, columns, channels; uint8. Shape (h, w, 3).
    """

    camera: int
    capture_ns: int
    pixels: NDArray[np.uint8]


class Driver(Protocol):
    """Connect, read, write, stop, close. Raise `InterlockError` for what a person can mend; nothing else is caught."""

    @property
    def period_ns(self) -> int:
        """Time between two reads."""

    def connect(self) -> None:
        """Opens the robot. Must not move anything."""

    def read(self, state: State, now_ns: int) -> None:
        """Fills `state` with the newest measurement and its capture time."""

    def images(self, now_ns: int) -> Iterable[Image]:
        """Pictures taken since the last call, oldest first; empty for a robot without cameras."""

    def write(self, command: Command, now_ns: int) -> None:
        """Hands one guarded command to the drives."""

    def stop(self) -> None:
        """What the robot file declares for a lost supervisor. Called when commands end for good."""

    def close(self) -> None:
        """Lets go of the robot."""
