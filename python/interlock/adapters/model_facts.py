"""What one vendor file says about a robot."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from interlock.contract.codes import problem
from interlock.contract.parts import JOINT_NAME
from interlock.errors import InterlockError


def joint_name(name: str, where: str) -> str:
    """The name itself. Raises `InterlockError` `joint-name` for one that no contract could write."""
    if re.fullmatch(JOINT_NAME, name) is None:
        raise InterlockError(problems=[problem("joint-name", where, got=f"`{name[:64]}`" if name else "no name")])
    return name


@dataclass(slots=True)
class JointFacts:
    """One joint; None where the file does not say. SI: rad, rad/s, N*m (m, m/s, N for a slide).

    Attributes:
        name: Full name.
        is_slide: Moves along, not around.
        pos: Range.
        vel: Largest speed.
        torque: Largest torque, the smallest of all that the file gives.
        torque_from: Which of them, such as `actuatorfrcrange`.
        drive: `motor`, `position`, `velocity` or empty.
        kp: Stiffness of a position drive.
    """

    name: str
    is_slide: bool = False
    pos: tuple[float, float] | None = None
    vel: float | None = None
    torque: float | None = None
    torque_from: str = ""
    drive: str = ""
    kp: float | None = None


@dataclass(slots=True)
class ModelFacts:
    """One file.

    Attributes:
        file: Its name.
        model: What it calls the robot.
        is_floating: Whether the base moves freely; None where the file cannot say.
        joints: In document order.
        left_out: Joints without a drive, in a file that has drives.
        step_s: Physics step; None where the file is no simulation.
        imu_site: Where the inertial sensor sits.
        gives: Base quantities that the file has sensors for.
        notes: What was seen and not used.
    """

    file: str
    model: str
    is_floating: bool | None
    joints: list[JointFacts]
    left_out: list[str] = field(default_factory=list)
    step_s: float | None = None
    imu_site: str = ""
    gives: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
