"""Joins a contract to a robot by name. Everything that does not fit is collected and reported together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from interlock.contract.bind_command import bind_command, command_kind
from interlock.contract.bind_joints import JointMap, bind_joints
from interlock.contract.bind_limits import bind_limits
from interlock.contract.bind_safe import bind_safe, bind_start, default_pose
from interlock.contract.bind_tensors import bind_goal, bind_inputs, bind_outputs, gives
from interlock.contract.bind_timing import bind_timing
from interlock.contract.binding import Binding, LimitLine, Scope
from interlock.contract.canonical import digest
from interlock.contract.expand_contract import expand_contract
from interlock.contract.expand_robot import expand_robot
from interlock.contract.identity import identity
from interlock.contract.model import Contract, Robot
from interlock.contract.text import NEXT
from interlock.errors import InterlockError, Problem

PLAN_SCHEMA = "interlock.plan/1"

D = TypeVar("D")
X = TypeVar("X")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """How far a contract and a robot fit.

    Attributes:
        problems: Everything that does not fit.
        enforced: What happens to each limited quantity; empty where one of the documents contradicts itself.
        binding: Only where nothing is wrong.
    """

    problems: tuple[Problem, ...]
    enforced: tuple[LimitLine, ...]
    binding: Binding | None


def bind(contract: Contract, robot: Robot, calibration: str | None = None) -> Binding:
    """Joins a contract to a robot.

    Args:
        contract: What the policy was trained on.
        robot: The machine type.
        calibration: Of the unit at hand, where its file says one.

    Raises:
        InterlockError: Everything that does not fit, in one list.
    """
    found = survey(contract, robot, calibration)
    if found.binding is None:
        raise InterlockError(problems=list(found.problems), next=NEXT)
    return found.binding


def survey(contract: Contract, robot: Robot, calibration: str | None = None) -> Survey:
    """Tries to join a contract to a robot. Arguments are those of `bind`; nothing is raised."""
    problems: list[Problem] = []
    c = _expanded(expand_contract, contract, problems)
    r = _expanded(expand_robot, robot, problems)
    if c is None or r is None:
        return Survey(problems=tuple(problems), enforced=(), binding=None)
    scope = Scope(contract=contract, robot=robot, c=c, r=r, calibration=calibration or "")
    binding = _bind(scope)
    return Survey(problems=tuple(scope.problems), enforced=tuple(scope.enforced), binding=binding)


def _expanded(expand: Callable[[D], X], document: D, problems: list[Problem]) -> X | None:
    try:
        return expand(document)
    except InterlockError as error:
        problems.extend(error.problems)
        return None


def _bind(scope: Scope) -> Binding | None:
    joints = bind_joints(scope)
    kind = command_kind(scope)
    timing = bind_timing(scope, kind or "position")
    inputs = bind_inputs(scope, joints)
    outputs = bind_outputs(scope, joints)
    goal = bind_goal(scope)
    start = bind_start(scope, joints)
    default = default_pose(scope, joints, start["pose"])
    _check_tilt(scope)
    if kind is None:
        return None
    command = bind_command(scope, kind, joints)
    limits = bind_limits(scope, kind)
    safe = bind_safe(scope, kind, start["pose"])
    if scope.problems or joints is None:
        return None
    identities = _identities(scope, joints)
    numbers = {
        "schema": PLAN_SCHEMA,
        "identity": identities,
        "timing": timing,
        "joints": {
            "names": list(scope.r.names),
            "si_per_unit": list(joints.robot_si),
            "policy_from_robot": list(joints.policy_from_robot),
            "default_pos": default,
        },
        "command": command,
        "cameras": _cameras(scope),
        "inputs": inputs,
        "outputs": outputs,
        "goal": goal,
        "limits": limits,
        "safe": safe,
        "start": start,
    }
    return Binding(
        contract=scope.c,
        robot=scope.r,
        identity=identities["binding"],
        conversions=tuple(scope.conversions),
        enforced=tuple(scope.enforced),
        choices=tuple(scope.choices),
        notes=tuple(dict.fromkeys((*scope.c.conventions, *scope.notes))),
        numbers=numbers,
    )


def _check_tilt(scope: Scope) -> None:
    if scope.r.base == "floating" and not gives(scope, "quat"):
        where = scope.robot.where("sensors")
        scope.refuse(
            "sensor-missing", where, expected="a sensor that gives quat: a floating base has a tilt", got="none"
        )


def _cameras(scope: Scope) -> list[dict[str, Any]]:
    return [
        {
            "name": camera["name"],
            "height": camera["size_hw"][0],
            "width": camera["size_hw"][1],
            "bgr": camera["color"] == "bgr",
            "period_ns": round(camera["period_s"] * 10**9),
        }
        for camera in scope.r.cameras
    ]


def _identities(scope: Scope, joints: JointMap) -> dict[str, str]:
    parts: dict[str, Any] = {"contract": identity(scope.c), "robot": identity(scope.r)}
    conversions = [[each.what, list(each.names), each.robot_unit, each.policy_unit] for each in scope.conversions]
    bound = {
        **parts,
        "calibration": scope.calibration or scope.r.calibration,
        "policy_from_robot": list(joints.policy_from_robot),
        "conversions": conversions,
    }
    return {**parts, "binding": digest(bound)}
