"""Reads the facts of an MJCF file without MuJoCo: joints, ranges, drives, sensors, class defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from interlock.contract.codes import problem
from interlock.errors import InterlockError

from .model_facts import JointFacts, ModelFacts, joint_name
from .xml_tree import Node

_ACTUATORS = ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion")
_MAIN = "main"
_DEFAULT_STEP_S = 0.002  # MuJoCo XML reference, option/timestep
_LARGEST = 1e9

Attributes = Mapping[str, str]


@dataclass(slots=True)
class _Class:
    """One default class: attributes per element kind, parents' already merged in."""

    joint: dict[str, str] = field(default_factory=dict)
    actuator: dict[str, str] = field(default_factory=dict)
    actuator_tag: str = ""


@dataclass(slots=True)
class _Reader:
    root: Node
    file: str
    classes: dict[str, _Class] = field(default_factory=lambda: {_MAIN: _Class()})
    degrees: bool = True
    autolimits: bool = True

    def where(self, node: Node) -> str:
        return f"{self.file}:{node.line} <{node.tag}>"

    def numbers(self, node: Node, attributes: Attributes, key: str, count: int) -> tuple[float, ...] | None:
        text = attributes.get(key)
        if text is None:
            return None
        try:
            values = tuple(float(each) for each in text.split())
        except ValueError:
            values = ()
        is_good = len(values) >= count and all(math.isfinite(each) and abs(each) <= _LARGEST for each in values)
        if not is_good:
            got = text[:60]
            raise InterlockError(
                problems=[problem("wrong-value", f"{self.where(node)} {key}", expected=f"{count} numbers", got=got)]
            )
        return values[:count]

    def limited(self, node: Node, attributes: Attributes, key: str, flag: str) -> tuple[float, float] | None:
        """A range where it is in force."""
        values = self.numbers(node, attributes, key, 2)
        switch = attributes.get(flag, "auto")
        if values is None or switch == "false" or (switch == "auto" and not self.autolimits):
            return None
        return (values[0], values[1]) if values[0] < values[1] else None


def read_mjcf(root: Node, file: str) -> ModelFacts:
    """The facts of one file.

    Args:
        root: Its `mujoco` element.
        file: Its name, for messages.

    Raises:
        InterlockError: `mjcf-unsupported` (includes, frames by reference), `mjcf-empty`, `wrong-value`.
    """
    reader = _Reader(root, file)
    _refuse_unsupported(reader, root)
    for compiler in root.all("compiler"):
        reader.degrees = compiler.attributes.get("angle", "degree" if reader.degrees else "radian") == "degree"
        reader.autolimits = compiler.attributes.get("autolimits", "true") == "true"
    for default in root.all("default"):
        _read_default(reader, default, _Class(), _MAIN)
    facts = ModelFacts(file=file, model=root.attributes.get("model", ""), is_floating=False, joints=[])
    trees: dict[str, bool] = {}
    for world in root.all("worldbody"):
        for body in _bodies(world):
            joints = list(_joints(reader, body, body.attributes.get("childclass", _MAIN), facts))
            has_free = _has_free_joint(reader, body)
            trees.update({joint.name: has_free for joint in joints})
            facts.joints.extend(joints)
    if not facts.joints:
        raise InterlockError(problems=[problem("mjcf-empty", file, got="no hinge or slide joint")])
    _read_actuators(reader, facts)
    facts.is_floating = any(trees[joint.name] for joint in facts.joints)
    _read_sensors(root, facts)
    cameras = [node.attributes.get("name", "?") for node in _descendants(root) if node.tag == "camera"]
    if cameras:
        facts.notes.append(f"{file}: cameras of the model ({', '.join(cameras)}): add those that the robot has")
    steps = [reader.numbers(option, option.attributes, "timestep", 1) for option in root.all("option")]
    given = [step[0] for step in steps if step is not None]
    facts.step_s = given[-1] if given else _DEFAULT_STEP_S
    return facts


def _refuse_unsupported(reader: _Reader, node: Node) -> None:
    for each in _descendants(node):
        if each.tag in ("include", "attach", "replicate"):
            got = f"<{each.tag}>"
            raise InterlockError(problems=[problem("mjcf-unsupported", reader.where(each), got=got)])


def _descendants(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(each.children))


def _read_default(reader: _Reader, node: Node, parent: _Class, fallback: str) -> None:
    own = _Class(dict(parent.joint), dict(parent.actuator), parent.actuator_tag)
    for child in node.children:
        if child.tag == "joint":
            own.joint.update(child.attributes)
        elif child.tag in _ACTUATORS:
            own.actuator.update(child.attributes)
            own.actuator_tag = child.tag
    reader.classes[node.attributes.get("class", fallback)] = own
    for child in node.all("default"):
        _read_default(reader, child, own, "")


def _bodies(world: Node) -> Iterator[Node]:
    for child in world.children:
        if child.tag == "body":
            yield child
        elif child.tag == "frame":
            yield from _bodies(child)


def _joints(reader: _Reader, body: Node, childclass: str, facts: ModelFacts) -> Iterator[JointFacts]:
    for child in body.children:
        inherited = child.attributes.get("childclass", childclass)
        if child.tag in ("body", "frame"):
            yield from _joints(reader, child, inherited, facts)
        elif child.tag == "joint":
            attributes = _with_class(reader, child, childclass)
            kind = attributes.get("type", "hinge")
            if kind in ("hinge", "slide"):
                yield _joint(reader, child, attributes, is_slide=kind == "slide")
            elif kind == "ball":
                facts.notes.append(f"{reader.where(child)}: ball joint left out")


def _with_class(reader: _Reader, node: Node, childclass: str) -> dict[str, str]:
    name = node.attributes.get("class", childclass)
    if name not in reader.classes:
        known = ", ".join(reader.classes)
        raise InterlockError(
            problems=[problem("wrong-value", reader.where(node), expected=f"one of {known}", got=name)]
        )
    return {**reader.classes[name].joint, **node.attributes}


def _joint(reader: _Reader, node: Node, attributes: Attributes, *, is_slide: bool) -> JointFacts:
    joint = JointFacts(name=joint_name(attributes.get("name", ""), reader.where(node)), is_slide=is_slide)
    pos = reader.limited(node, attributes, "range", "limited")
    if pos is not None:
        factor = math.pi / 180 if reader.degrees and not is_slide else 1.0
        joint.pos = (pos[0] * factor, pos[1] * factor)
    force = reader.limited(node, attributes, "actuatorfrcrange", "actuatorfrclimited")
    _tighten(joint, force, 1.0, "actuatorfrcrange")
    return joint


def _tighten(joint: JointFacts, force: tuple[float, float] | None, factor: float, source: str) -> None:
    if force is None:
        return
    # Of an unequal range the smaller side counts.
    largest = min(abs(force[0]), abs(force[1])) * abs(factor)
    if largest > 0 and (joint.torque is None or largest < joint.torque):
        joint.torque, joint.torque_from = largest, source


def _has_free_joint(reader: _Reader, body: Node) -> bool:
    kinds = [
        _with_class(reader, child, body.attributes.get("childclass", _MAIN)).get("type", "hinge")
        for child in body.all("joint")
    ]
    return "free" in kinds or any(True for _ in body.all("freejoint"))


def _read_actuators(reader: _Reader, facts: ModelFacts) -> None:
    by_name = {joint.name: joint for joint in facts.joints}
    driven: set[str] = set()
    for block in reader.root.all("actuator"):
        for node in block.children:
            target = node.attributes.get("joint") or node.attributes.get("jointinparent", "")
            joint = by_name.get(target)
            if joint is None or node.tag not in _ACTUATORS:
                facts.notes.append(f"{reader.where(node)}: drives no hinge or slide joint, left out")
                continue
            driven.add(joint.name)
            _read_actuator(reader, node, joint)
    if driven:
        facts.left_out = [joint.name for joint in facts.joints if joint.name not in driven]
        facts.joints = [joint for joint in facts.joints if joint.name in driven]


def _read_actuator(reader: _Reader, node: Node, joint: JointFacts) -> None:
    own = reader.classes.get(node.attributes.get("class", _MAIN), reader.classes[_MAIN])
    attributes = {**own.actuator, **node.attributes}
    gear = (reader.numbers(node, attributes, "gear", 1) or (1.0,))[0]
    joint.drive, gain = _drive(reader, node, attributes, own.actuator_tag)
    if joint.drive == "position":
        joint.kp = abs(gain)
    force = reader.limited(node, attributes, "forcerange", "forcelimited")
    _tighten(joint, force, gear, "forcerange")
    control = reader.limited(node, attributes, "ctrlrange", "ctrllimited")
    if control is None:
        return
    if joint.drive == "motor":
        _tighten(joint, control, gain * gear, "ctrlrange")
    elif joint.drive == "position" and gear == 1.0:
        low, high = joint.pos or control
        joint.pos = (max(low, control[0]), min(high, control[1]))
    elif joint.drive == "velocity" and gear != 0.0:
        joint.vel = min(abs(control[0]), abs(control[1])) / abs(gear)


def _drive(reader: _Reader, node: Node, attributes: Attributes, default_tag: str) -> tuple[str, float]:
    """Kind of drive and its gain, as MuJoCo's shortcuts define them."""
    tag = default_tag if node.tag == "general" and default_tag in ("position", "velocity") else node.tag
    if tag == "position":
        return "position", (reader.numbers(node, attributes, "kp", 1) or (1.0,))[0]
    if tag == "velocity":
        return "velocity", (reader.numbers(node, attributes, "kv", 1) or (1.0,))[0]
    if tag == "motor":
        return "motor", 1.0
    if tag != "general":
        return "", 1.0
    gain = (reader.numbers(node, attributes, "gainprm", 1) or (1.0,))[0]
    bias = attributes.get("biasprm", "0 0 0").split()
    values = [float(each) if _is_number(each) else 0.0 for each in bias[:3]] + [0.0] * 3
    if attributes.get("biastype", "none") == "affine" and values[1] != 0.0:
        return "position", gain
    if attributes.get("biastype", "none") == "affine" and values[2] != 0.0:
        return "velocity", gain
    return "motor", gain


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _read_sensors(root: Node, facts: ModelFacts) -> None:
    words = {"gyro": "ang_vel", "velocimeter": "lin_vel", "framequat": "quat"}
    sites: dict[str, set[str]] = {}
    for block in root.all("sensor"):
        for node in block.children:
            site = node.attributes.get("site") or node.attributes.get("objname", "")
            if node.tag in words and site:
                sites.setdefault(site, set()).add(words[node.tag])
    with_gyro = [site for site, gives in sites.items() if "ang_vel" in gives]
    chosen = (with_gyro or list(sites))[:1]
    if chosen:
        facts.imu_site, facts.gives = chosen[0], sites[chosen[0]]
