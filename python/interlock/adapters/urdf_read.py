"""Reads the facts of a URDF file: joints, ranges, effort and velocity limits."""

from __future__ import annotations

import math

from interlock.contract.codes import problem
from interlock.errors import InterlockError

from .model_facts import JointFacts, ModelFacts, joint_name
from .xml_tree import Node

_LARGEST = 1e9


def read_urdf(root: Node, file: str) -> ModelFacts:
    """The facts of one file.

    Args:
        root: Its `robot` element.
        file: Its name, for messages.

    Raises:
        InterlockError: `mjcf-empty`, `wrong-value`.
    """
    facts = ModelFacts(file=file, model=root.attributes.get("name", ""), is_floating=None, joints=[])
    for node in root.all("joint"):
        kind = node.attributes.get("type", "")
        if kind not in ("revolute", "continuous", "prismatic") or any(True for _ in node.all("mimic")):
            facts.is_floating = True if kind == "floating" else facts.is_floating
            continue
        joint = JointFacts(
            name=joint_name(node.attributes.get("name", ""), f"{file}:{node.line} <joint>"),
            is_slide=kind == "prismatic",
        )
        limit = next(node.all("limit"), None)
        if limit is not None:
            low, high = _number(limit, "lower", file), _number(limit, "upper", file)
            if low is not None and high is not None and low < high and kind != "continuous":
                joint.pos = (low, high)
            joint.torque = _positive(_number(limit, "effort", file))
            joint.torque_from = "effort" if joint.torque is not None else ""
            joint.vel = _positive(_number(limit, "velocity", file))
        facts.joints.append(joint)
    if not facts.joints:
        raise InterlockError(problems=[problem("mjcf-empty", file, got="no revolute or prismatic joint")])
    return facts


def _number(node: Node, key: str, file: str) -> float | None:
    text = node.attributes.get(key)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= _LARGEST:
        where = f"{file}:{node.line} <{node.tag}> {key}"
        raise InterlockError(problems=[problem("wrong-value", where, expected="a number", got=text[:60])])
    return value


def _positive(value: float | None) -> float | None:
    return value if value is not None and value > 0 else None
