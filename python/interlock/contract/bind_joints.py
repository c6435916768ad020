"""Joints by name, units by conversion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.contract.binding import Conversion, Scope
from interlock.contract.expanded import Numbers
from interlock.contract.units import are_convertible, si_per


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMap:
    """How policy and robot joints correspond.

    Attributes:
        policy_from_robot: Robot index of each policy joint.
        robot_from_policy: Policy index of each robot joint.
        robot_si: SI value of one robot position unit, robot order.
        policy_si: SI value of one policy position unit, policy order.
    """

    policy_from_robot: tuple[int, ...]
    robot_from_policy: tuple[int, ...]
    robot_si: Numbers
    policy_si: Numbers

    def to_robot(self, values: Sequence[float]) -> list[float]:
        """Policy order to robot order."""
        return [float(values[index]) for index in self.robot_from_policy]

    def pose_si(self, values: Sequence[float]) -> list[float]:
        """Positions in policy order and units to SI in robot order."""
        return self.to_robot([value * unit for value, unit in zip(values, self.policy_si, strict=True)])


def bind_joints(scope: Scope) -> JointMap | None:
    """Maps joints by name; None when they do not correspond."""
    c, r = scope.c.joints, scope.r
    if scope.c.trained_for != r.type:
        place = scope.contract.where("trained_for")
        scope.refuse("wrong-robot", place, expected=f"{r.type}, the robot's `type`", got=scope.c.trained_for)
    _check_calibration(scope)
    unknown = [name for name in c.names if name not in r.names]
    missing = [name for name in r.names if name not in c.names]
    for name in unknown:
        expected = f"one of {', '.join(r.names)}"
        scope.refuse("joint-unknown", scope.contract.where("joints", "order"), expected=expected, got=name)
    for name in missing:
        scope.refuse("joint-missing", scope.contract.where("joints", "order"), expected=name, got="nothing")
    if unknown or missing:
        return None
    policy_from_robot = tuple(r.names.index(name) for name in c.names)
    fits = True
    groups: dict[tuple[str, str], list[str]] = {}
    for name, policy_unit, index in zip(c.names, c.unit, policy_from_robot, strict=True):
        robot_unit = r.unit[index]
        if not are_convertible(policy_unit, robot_unit):
            place = scope.contract.where("joints", "unit")
            scope.refuse("unit-mismatch", place, expected=f"{robot_unit} for {name}", got=policy_unit)
            fits = False
        elif policy_unit != robot_unit:
            groups.setdefault((robot_unit, policy_unit), []).append(name)
    if not fits:
        return None
    for (robot_unit, policy_unit), names in groups.items():
        convert(scope, "joints", tuple(names), robot_unit, policy_unit)
    return JointMap(
        policy_from_robot=policy_from_robot,
        robot_from_policy=tuple(c.names.index(name) for name in r.names),
        robot_si=tuple(si_per(unit) for unit in r.unit),
        policy_si=tuple(si_per(unit) for unit in c.unit),
    )


def convert(scope: Scope, what: str, names: tuple[str, ...], robot_unit: str, policy_unit: str) -> None:
    """Records a conversion."""
    factor = si_per(robot_unit) / si_per(policy_unit)
    scope.conversions.append(
        Conversion(what=what, names=names, robot_unit=robot_unit, policy_unit=policy_unit, factor=factor)
    )


def _check_calibration(scope: Scope) -> None:
    wanted = scope.c.joints.calibration
    here = scope.calibration or scope.r.calibration
    if scope.calibration and scope.r.calibration and scope.calibration != scope.r.calibration:
        place = scope.robot.where("joints", "zero")
        expected = f"{scope.calibration}, the calibration of this unit"
        scope.refuse("calibration-mismatch", place, expected=expected, got=scope.r.calibration)
    elif wanted and wanted != here:
        place = scope.contract.where("joints", "zero")
        scope.refuse("calibration-mismatch", place, expected=here or "no calibration", got=wanted)
    elif here and not wanted:
        place = scope.contract.where("joints")
        scope.refuse("calibration-mismatch", place, expected=f"zero: {{calibration: {here}}}", got="none")
