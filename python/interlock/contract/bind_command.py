"""Which kind of command the policy gives, and whether the robot takes it."""

from __future__ import annotations

from typing import Any

from interlock.contract.bind_joints import JointMap
from interlock.contract.bind_tensors import gives
from interlock.contract.binding import Scope

_DIRECT = {"joint_velocity_target": "velocity", "joint_torque": "torque"}


def command_kind(scope: Scope) -> str | None:
    """`position`, `position_pd`, `velocity` or `torque`; None where the policy gives something else.

    A position target with gains is the far end of a spring (`position_pd`); one without is a trajectory (`position`).
    """
    action, accepts = scope.action, scope.r.accepts
    where = scope.contract.where("outputs", scope.output.name, "kind")
    has_gains = scope.c.joints.kp is not None
    if action.kind == "joint_position_target":
        kind = "position_pd" if has_gains else "position"
    elif action.kind in _DIRECT:
        kind = _DIRECT[action.kind]
    else:
        served = ", ".join(["joint_position_target", *_DIRECT])
        scope.refuse("kind-not-served", where, expected=f"one of {served}", got=action.kind)
        return None
    if kind in accepts or (kind == "position_pd" and "torque" in accepts):
        return kind
    if kind == "position" and ("position_pd" in accepts or "torque" in accepts):
        place = scope.contract.where("joints", "each")
        expected = f"kp and kd: the robot accepts {', '.join(accepts)}"
        scope.refuse("gains-missing", place, expected=expected, got="a position target without gains")
        return "position_pd"
    expected = f"one of {', '.join(accepts)} (robot `accepts`)"
    got = f"{kind}{' (position target with gains)' if kind == 'position_pd' else ''}"
    scope.refuse("kind-not-accepted", where, expected=expected, got=got)
    return kind


def bind_command(scope: Scope, kind: str, joints: JointMap | None) -> dict[str, Any]:
    """The plan's `command`. Where the robot takes torque, the supervisor runs the PD law at the servo rate."""
    is_pd = kind == "position_pd"
    host_pd = is_pd and "position_pd" not in scope.r.accepts
    if is_pd and not gives(scope, "vel"):
        where = scope.robot.where("sensors", "joints", "gives") if scope.robot.sensors else scope.robot.where()
        expected = "joint velocity: torque of a PD target cannot be predicted without it"
        scope.refuse("sensor-missing", where, expected=expected, got="none")
    kp, kd = scope.c.joints.kp, scope.c.joints.kd
    if not is_pd or joints is None or kp is None or kd is None:
        return {"kind": kind, "host_pd": host_pd, "kp": [], "kd": []}
    return {"kind": kind, "host_pd": host_pd, "kp": joints.to_robot(kp), "kd": joints.to_robot(kd)}
