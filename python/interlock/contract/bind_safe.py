"""What acts when the policy may not, and where a run may begin."""

from __future__ import annotations

from typing import Any

from interlock.contract.bind_joints import JointMap
from interlock.contract.binding import Choice, Scope
from interlock.contract.expand_robot import CAUSES, DEFAULT_MOVE_S
from interlock.contract.rows import expand_rows
from interlock.contract.units import DEG, UNITS, si_per

MS_NS = 1_000_000
S_NS = 1_000_000_000

START_WITHIN = {"angle": 0.15, "fraction": 0.15, "length": 0.01}  # rad, share of the range, m: choices, printed
START_TILT_RAD = 0.2
_WORDS = {"angle": ("rad", 1.0), "fraction": ("percent", 0.01), "length": ("mm", 0.001)}


def bind_start(scope: Scope, joints: JointMap | None) -> dict[str, Any]:
    """The plan's `start`: pose in robot order, SI, and how far from it a run may begin."""
    pose = _start_pose(scope, joints)
    written = scope.contract.choices.start_within
    angle_rad = None
    if written is not None:
        angle_rad = written.joint_pos_rad
        if written.joint_pos_deg is not None:
            angle_rad = written.joint_pos_deg * DEG
    percent = None if written is None else written.joint_pos_percent
    mm = None if written is None else written.joint_pos_mm
    given = {
        "angle": angle_rad,
        "fraction": None if percent is None else percent / 100,
        "length": None if mm is None else mm / 1000,
    }
    used = [quantity for quantity in START_WITHIN if any(UNITS[unit].quantity == quantity for unit in scope.r.unit)]
    within: dict[str, float] = {}
    for quantity in used:
        word, unit = _WORDS[quantity]
        own = given[quantity]
        key = f"choices.start_within.joint_pos_{word}"
        default = START_WITHIN[quantity] / unit
        within[quantity] = scope.choose(key, None if own is None else own / unit, default, "near the start pose") * unit
    tilt = None
    if scope.r.base == "floating":
        own = None if written is None else written.tilt_rad
        tilt = scope.choose("choices.start_within.tilt_rad", own, START_TILT_RAD, "upright")
    return {
        "pose": pose,
        "within_pos": [within[UNITS[unit].quantity] for unit in scope.r.unit],
        "within_tilt_rad": tilt,
    }


def default_pose(scope: Scope, joints: JointMap | None, start: list[float]) -> list[float]:
    """The contract's default pose, SI, robot order; the start pose for a contract without one."""
    default = scope.c.joints.default
    if default is None or joints is None:
        return start
    pose = joints.pose_si(default)
    _check_inside(scope, pose, "default-outside-limits", scope.contract.where("joints", "each"))
    return pose


def _start_pose(scope: Scope, joints: JointMap | None) -> list[float]:
    written = scope.contract.choices.start_pose
    c = scope.c.joints
    rows: tuple[float, ...] | None
    if isinstance(written, dict):
        found = expand_rows(
            written,
            scope.contract.joints.order,
            lambda pattern: scope.contract.where("choices", "start_pose", *([pattern] if pattern else [])),
            scope.problems,
        )
        rows = tuple(float(found.get(joint, 0.0)) for joint in scope.contract.joints.order)
        word = "as written"
    elif written == "mean" or (written is None and c.default is None):
        rows, word = c.mean_state, "mean"
    else:
        rows, word = c.default, "default"
    why = "" if written else "the default pose" if word == "default" else "the mean of the training data"
    scope.choices.append(Choice(key="choices.start_pose", value=word, is_written=written is not None, why=why))
    if rows is None:
        place = scope.contract.where("choices", "start_pose")
        scope.refuse(
            "start-pose-missing", place, expected="a pose: the contract has neither default nor mean", got=word
        )
        return [0.0] * scope.n
    if joints is None:
        return [0.0] * scope.n
    pose = joints.pose_si(rows)
    if word != "default":
        _check_inside(scope, pose, "start-outside-limits", scope.contract.where("choices", "start_pose"))
    return pose


def _check_inside(scope: Scope, pose: list[float], code: str, where: str) -> None:
    ranges = scope.r.limits.get("pos")
    if ranges is None:
        return
    for name, value, (low, high), unit in zip(scope.r.names, pose, ranges, scope.r.unit, strict=True):
        si = si_per(unit)
        if not low * si <= value <= high * si:
            expected = f"{name} inside [{low:g}, {high:g}] {unit}"
            scope.refuse(code, where, expected=expected, got=f"{value / si:g} {unit}")


def bind_safe(scope: Scope, kind: str, start: list[float]) -> dict[str, Any]:
    """The plan's `safe`."""
    safe = scope.r.safe
    before = safe["before_start"]
    before_start = None
    if before != "none":
        before_start = {"do": "go_to", "pose": start, "duration_ns": round(before["in_s"] * S_NS), "then": "hold"}
        if kind in ("velocity", "torque"):
            where = scope.robot.where("safe", "before_start")
            scope.refuse("behaviour-not-served", where, expected="none", got=f"move_to_start by {kind} commands")
    behaviours = {cause: _behaviour(scope, kind, cause, safe[cause]) for cause in CAUSES}
    timeout = safe["supervisor_lost"]["command_timeout_ms"]
    return {
        "before_start": before_start,
        **behaviours,
        "command_timeout_ns": 0 if timeout == "none" else round(timeout * MS_NS),
        "floating_base": scope.r.base == "floating",
    }


def _behaviour(scope: Scope, kind: str, cause: str, block: dict[str, Any]) -> dict[str, Any]:
    where = scope.robot.where("safe", cause)
    word = block["do"]
    holds = word == "stop_and_hold" or (word == "go_to" and block["then"] == "hold")
    if holds and scope.r.base == "floating":
        scope.refuse("floating-base-hold", where, expected="damp, or policy with goal zero", got=word)
    if word == "stop_and_hold":
        if kind == "torque":
            scope.refuse("behaviour-not-served", where, expected="damp", got="stop_and_hold by torque commands")
        return {"do": "stop_and_hold"}
    if word == "damp":
        return _damp(scope, kind, where, block["kd"])
    if word == "go_to":
        return _go_to(scope, kind, cause, block)
    _check_policy_zero(scope, cause, where)
    return {"do": "policy_zero_goal"}


def _damp(scope: Scope, kind: str, where: str, kd: list[float]) -> dict[str, Any]:
    if kind not in ("position_pd", "torque"):
        scope.refuse("behaviour-not-served", where, expected="stop_and_hold", got=f"damp by {kind} commands")
    largest = scope.r.limits.get("kd_max")
    if largest is not None:
        for name, gain, most in zip(scope.r.names, kd, largest, strict=True):
            if gain > most:
                scope.refuse("gain-above-maximum", where, expected=f"kd of {name} at most {most:g}", got=f"{gain:g}")
    return {"do": "damp", "kd": list(kd)}


def _go_to(scope: Scope, kind: str, cause: str, block: dict[str, Any]) -> dict[str, Any]:
    where = scope.robot.where("safe", cause)
    if kind in ("velocity", "torque"):
        scope.refuse("behaviour-not-served", where, expected="stop_and_hold or damp", got=f"go_to by {kind} commands")
    own = getattr(scope.robot.safe, cause).in_s
    scope.choose(f"safe.{cause}.in_s", own, DEFAULT_MOVE_S, "slow enough to watch")
    pose = scope.r.poses.get(block["pose"])
    if pose is None:
        known = ", ".join(scope.r.poses) or "none"
        scope.refuse("pose-unknown", where, expected=f"one of `poses`: {known}", got=block["pose"])
        pose = (0.0,) * scope.n
    else:
        si = [value * si_per(unit) for value, unit in zip(pose, scope.r.unit, strict=True)]
        _check_inside(scope, si, "start-outside-limits", scope.robot.where("poses", block["pose"]))
        pose = tuple(si)
    return {"do": "go_to", "pose": list(pose), "duration_ns": round(block["in_s"] * S_NS), "then": block["then"]}


def _check_policy_zero(scope: Scope, cause: str, where: str) -> None:
    if cause == "policy_lost":
        expected = "stop_and_hold, damp or go_to: a lost policy cannot act"
        scope.refuse("behaviour-impossible", where, expected=expected, got="policy")
    velocity = scope.c.goals.velocity
    if velocity is None:
        scope.refuse(
            "behaviour-impossible", where, expected="a policy with a velocity goal", got="a policy without one"
        )
    elif any(not low <= 0 <= high for _, (low, high), _ in velocity):
        scope.refuse("behaviour-impossible", where, expected="goal ranges that hold zero", got="zero is outside")
