"""A robot written out, and held against itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.contract.codes import problem
from interlock.contract.expanded import Numbers, RobotX
from interlock.contract.joint_rows import check_order, column, joint_rows, joint_units
from interlock.contract.parts import as_data
from interlock.contract.robot_model import ROBOT_SCHEMA, Damp, GoTo, KindLimits, Robot
from interlock.contract.rows import expand_rows
from interlock.contract.units import per_time
from interlock.errors import InterlockError, Problem

SCALAR_LIMITS = ("vel", "acc", "jerk", "torque", "kp_max", "kd_max", "window_travel", "distance", "torque_rate")
KINDS = ("position", "position_pd", "velocity", "torque")
CAUSES = ("policy_lost", "goal_lost", "on_exit")
ASSUMED = "assumed"
DEFAULT_MOVE_S = 3.0  # a choice: slow enough to watch


def expand_robot(robot: Robot) -> RobotX:
    """Writes a robot out.

    Raises:
        InterlockError: Everything in which the robot contradicts itself.
    """
    problems: list[Problem] = []
    expanded = _expand(robot, problems)
    if problems:
        raise InterlockError(problems=problems)
    return expanded


def _expand(robot: Robot, problems: list[Problem]) -> RobotX:
    block = robot.joints
    check_order(block.order, robot.where, problems)
    rows = joint_rows(block.each, block.order, robot.where, problems)
    used = {name for row in block.each.values() for name in row.model_fields_set}
    units = joint_units(block.unit, block.order, used, robot.where, problems)
    limits: dict[str, tuple[Any, ...]] = {}
    if rows is not None and all(row.pos is not None for row in rows):
        limits["pos"] = tuple(row.pos for row in rows)
    for quantity in SCALAR_LIMITS:
        values = column(rows, quantity, units.factor.get(quantity, 1.0))
        if values is not None:
            limits[quantity] = values
    _check_sources(robot, used, problems)
    _check_sensors(robot, units.position, problems)
    _check_cameras(robot, problems)
    _check_estop(robot, problems)
    poses = {
        name: _per_joint(pose, block.order, ("poses", name), robot, problems) for name, pose in robot.poses.items()
    }
    return RobotX(
        schema=ROBOT_SCHEMA,
        type=robot.type,
        base=robot.base,
        driver={**as_data(robot.driver), "period_s": robot.driver.period_s},
        sim=None if robot.sim is None else as_data(robot.sim),
        sensors=_sensors(robot, units.position),
        cameras=tuple(
            {"name": name, "period_s": camera.period_s, **as_data(camera)} for name, camera in robot.cameras.items()
        ),
        names=tuple(joint + block.name_suffix for joint in block.order),
        unit=units.position,
        calibration=block.zero.calibration if block.zero else "",
        accepts=block.accepts,
        limits=limits,
        sources=dict(block.source),
        poses=poses,
        kinds=_kinds(robot, problems),
        safe=_safe(robot, problems),
    )


def _check_sources(robot: Robot, used: set[str], problems: list[Problem]) -> None:
    source = robot.joints.source
    place = robot.where("joints", "source")
    problems.extend(
        problem("limit-without-source", place, expected=f"the source of {quantity}", got="none")
        for quantity in sorted(used - set(source))
    )
    for quantity in source:
        if quantity not in used:
            here = robot.where("joints", "source", quantity)
            problems.append(problem("unknown-key", here, expected="a quantity of the rows", got=quantity))
    if not robot.driver.is_simulated:
        for quantity, text in source.items():
            if text == ASSUMED:
                here = robot.where("joints", "source", quantity)
                problems.append(problem("limit-assumed", here, got=f"{quantity} is assumed, the driver is not `sim:`"))


def _sensors(robot: Robot, position: Sequence[str]) -> dict[str, Any]:
    if robot.sensors is None:
        # A robot without a `sensors` block gives joint positions and nothing else, once per driver period.
        gives = {"pos": position[0] if len(set(position)) == 1 else "joints.unit"}
        return {"joints": {"gives": gives, "period_s": robot.driver.period_s, "clock": "host"}}
    dumped: dict[str, Any] = as_data(robot.sensors)
    for name, sensor in dumped.items():
        sensor["period_s"] = getattr(robot.sensors, name).period_s
    return dumped


def _check_sensors(robot: Robot, position: Sequence[str], problems: list[Problem]) -> None:
    if robot.sensors is None:
        return
    gives = robot.sensors.joints.gives
    words = set(position)
    for quantity, allowed in (
        ("pos", words),
        ("vel", {per_time(word, 1) for word in words}),
        ("torque", {"N*m", "N"}),
    ):
        unit = getattr(gives, quantity)
        if unit not in (None, "joints.unit") and (unit not in allowed or (quantity != "torque" and len(allowed) > 1)):
            place = robot.where("sensors", "joints", "gives", quantity)
            expected = " or ".join(sorted(allowed)) if len(allowed) == 1 else "one unit for all joints"
            problems.append(problem("sensor-unit", place, expected=expected, got=unit))


def _check_cameras(robot: Robot, problems: list[Problem]) -> None:
    seen: dict[str, str] = {}
    for name, camera in robot.cameras.items():
        if camera.device is None:
            continue
        if camera.device in seen:
            got = f"{seen[camera.device]} and {name} are {camera.device}"
            problems.append(problem("camera-device-twice", robot.where("cameras", name, "device"), got=got))
        seen[camera.device] = name


def _check_estop(robot: Robot, problems: list[Problem]) -> None:
    estop = robot.safe.estop
    place = robot.where("safe", "estop")
    if estop.by == "none":
        if estop.reason is None or not robot.driver.is_simulated:
            expected = "what stops the robot; `none` only for a simulated robot, with a `reason`"
            problems.append(problem("estop-missing", place, expected=expected, got="none"))
        return
    problems.extend(
        problem("missing-key", place, expected=f"the key `{key}`", got="nothing")
        for key in ("cuts", "bound_ms")
        if getattr(estop, key) is None
    )


def _per_joint(
    rows: Mapping[str, float], order: Sequence[str], path: tuple[str, ...], robot: Robot, problems: list[Problem]
) -> Numbers:
    found = expand_rows(rows, order, lambda pattern: robot.where(*path, *([pattern] if pattern else [])), problems)
    return tuple(float(found.get(joint, 0.0)) for joint in order)


def _kinds(robot: Robot, problems: list[Problem]) -> dict[str, dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        name = f"limits_for_{kind}"
        block: KindLimits | None = getattr(robot, name)
        if block is None:
            continue
        if kind not in robot.joints.accepts and not (kind == "position_pd" and "torque" in robot.joints.accepts):
            got = f"{name}, but `accepts` is {', '.join(robot.joints.accepts)}"
            problems.append(problem("limit-unenforced", robot.where(name), got=got))
        for quantity in block.not_applicable:
            if quantity in block.enforce:
                got = f"{quantity} enforced and not applicable"
                problems.append(problem("limit-unenforced", robot.where(name, "not_applicable"), got=got))
        made[kind] = {
            "enforce": sorted(block.enforce),
            "not_applicable": dict(block.not_applicable),
            "target_step_rad": block.target_step_rad,
            "target_step_deg": block.target_step_deg,
            "refuse_beyond": as_data(block.refuse_beyond),
        }
    return made


def _safe(robot: Robot, problems: list[Problem]) -> dict[str, Any]:
    safe = robot.safe
    made: dict[str, Any] = as_data(safe)
    shared = safe.policy_lost.kd if isinstance(safe.policy_lost, Damp) else None
    for cause in CAUSES:
        behaviour = getattr(safe, cause)
        if isinstance(behaviour, Damp):
            kd = behaviour.kd if behaviour.kd is not None else shared
            made[cause]["kd"] = _damping(kd, ("safe", cause), robot, problems)
        elif isinstance(behaviour, GoTo):
            made[cause]["in_s"] = behaviour.in_s or DEFAULT_MOVE_S
    lost = safe.supervisor_lost
    if lost.drives_then == "damp":
        own = lost.kd if lost.kd is not None else shared
        if own is not None:
            made["supervisor_lost"]["kd"] = _damping(own, ("safe", "supervisor_lost"), robot, problems)
    return made


def _damping(
    kd: Mapping[str, float] | None, path: tuple[str, ...], robot: Robot, problems: list[Problem]
) -> list[float]:
    if kd is None:
        problems.append(problem("damp-gain-missing", robot.where(*path), got="damp without kd"))
        return []
    return list(_per_joint(kd, robot.joints.order, (*path, "kd"), robot, problems))
