"""Makes a robot description from vendor files: the tightest value of each is kept, every conflict is named.

What no file says becomes `ask`; nothing is guessed. Same files, same text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.contract.codes import problem
from interlock.contract.text import draft_robot
from interlock.errors import InterlockError

from .mjcf_read import read_mjcf
from .model_facts import JointFacts, ModelFacts
from .robot_text import robot_text
from .urdf_read import read_urdf
from .xml_tree import parse_xml


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Files that disagree about one quantity.

    Attributes:
        quantity: pos, vel, torque.
        joints: Where they do, in the same way.
        values: As each file gives it, in the order of the files; `-` where it does not.
        kept: The tightest.
    """

    quantity: str
    joints: tuple[str, ...]
    values: tuple[str, ...]
    kept: str

    def line(self) -> str:
        """As it is printed, such as `hip_roll torque 88 | 88 | 139 -> 88`."""
        return f"{', '.join(self.joints)} {self.quantity} {' | '.join(self.values)} -> {self.kept}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What `interlock robot import` made.

    Attributes:
        text: The robot file.
        summary: What it is, in one line.
        is_floating: Falls when nobody balances it.
        conflicts: Where the files disagree, a line each.
        asks: What no file says, a line each.
        notes: What was seen and not used.
    """

    text: str
    summary: str
    is_floating: bool
    conflicts: tuple[str, ...]
    asks: tuple[str, ...]
    notes: tuple[str, ...]


def import_mjcf(files: Sequence[tuple[str, bytes]], *, simulated: bool = False) -> Imported:
    """Reads MJCF and URDF files of one machine type.

    Args:
        files: (name, content); the first MJCF file gives the order of the joints and is the robot in simulation.
        simulated: For a robot that exists in simulation only: driver and emergency stop are then known.

    Raises:
        InterlockError: `xml-…`, `mjcf-…`, `wrong-value`.
    """
    if not files:
        raise InterlockError(problems=[problem("mjcf-empty", "robot import", expected="a file", got="none")])
    models = [_read(name, content) for name, content in files]
    base = next((model for model in models if model.step_s is not None), models[0])
    others = [model for model in models if model is not base]
    notes = [note for model in models for note in model.notes]
    notes += [
        f"{model.file}: without a drive, left out: {', '.join(model.left_out)}" for model in models if model.left_out
    ]
    for model in others:
        _check_same_machine(base, model, notes)
    ordered = [base, *others]
    suffix = _common_suffix([joint.name for joint in base.joints])
    rows: dict[str, JointFacts] = {}
    found: list[tuple[str, str, tuple[str, ...], str]] = []
    for joint in base.joints:
        rows[joint.name.removesuffix(suffix)] = _merge(joint, ordered, suffix, found)
    conflicts = tuple(each.line() for each in _group(found))
    is_floating = any(model.is_floating for model in models)
    text = robot_text(base, ordered, rows, suffix, conflicts, is_floating=is_floating, simulated=simulated)
    groups: dict[str, int] = {}
    for ask in draft_robot(text).asks:
        groups[ask.group] = groups.get(ask.group, 0) + 1
    kind = "floating base (falls when nobody balances it)" if is_floating else "fixed base"
    return Imported(
        text=text,
        summary=f"{len(rows)} joints, {kind}",
        is_floating=is_floating,
        conflicts=conflicts,
        asks=tuple(f"{group} ({count} rows)" if count > 1 else group for group, count in groups.items()),
        notes=tuple(notes),
    )


def _read(name: str, content: bytes) -> ModelFacts:
    root = parse_xml(content, name)
    if root.tag == "mujoco":
        return read_mjcf(root, name)
    if root.tag == "robot":
        return read_urdf(root, name)
    where = f"{name}:{root.line}"
    raise InterlockError(
        problems=[problem("mjcf-empty", where, expected="<mujoco> or <robot>", got=f"<{root.tag[:40]}>")]
    )


def _check_same_machine(base: ModelFacts, other: ModelFacts, notes: list[str]) -> None:
    names, theirs = [joint.name for joint in base.joints], [joint.name for joint in other.joints]
    shared = [name for name in names if name in theirs]
    if not shared:
        raise InterlockError(
            problems=[
                problem("mjcf-disagree", other.file, expected=f"joints of {base.file}", got=", ".join(theirs[:6]))
            ]
        )
    extra = [name for name in theirs if name not in names]
    if extra:
        notes.append(f"{other.file}: not in {base.file}, left out: {', '.join(extra)}")
    absent = [name for name in names if name not in theirs]
    if absent:
        notes.append(f"{other.file}: says nothing about {', '.join(absent)}")
    slides = {joint.name: joint.is_slide for joint in other.joints}
    for joint in base.joints:
        if slides.get(joint.name, joint.is_slide) != joint.is_slide:
            where = f"{other.file} {joint.name}"
            raise InterlockError(problems=[problem("mjcf-disagree", where, expected="one kind of joint", got="two")])


def _merge(
    joint: JointFacts, models: Sequence[ModelFacts], suffix: str, found: list[tuple[str, str, tuple[str, ...], str]]
) -> JointFacts:
    said = [next((each for each in model.joints if each.name == joint.name), None) for model in models]
    short = joint.name.removesuffix(suffix)
    merged = JointFacts(name=joint.name, is_slide=joint.is_slide, drive=joint.drive, kp=joint.kp)
    ranges = [each.pos if each else None for each in said]
    given = [each for each in ranges if each is not None]
    if given:
        merged.pos = (max(low for low, _ in given), min(high for _, high in given))
        if merged.pos[0] >= merged.pos[1]:
            got = " | ".join(_range(each) for each in given)
            raise InterlockError(
                problems=[problem("mjcf-disagree", f"range of {joint.name}", expected="ranges that overlap", got=got)]
            )
        if len({_range(each) for each in given}) > 1:
            found.append((short, "pos", tuple(_range(each) for each in ranges), _range(merged.pos)))
    for quantity in ("vel", "torque"):
        values = [getattr(each, quantity) if each else None for each in said]
        known = [value for value in values if value is not None]
        if not known:
            continue
        setattr(merged, quantity, min(known))
        if len({f"{value:g}" for value in known}) > 1:
            shown = tuple("-" if value is None else f"{value:g}" for value in values)
            found.append((short, quantity, shown, f"{min(known):g}"))
    return merged


def _range(value: tuple[float, float] | None) -> str:
    return "-" if value is None else f"[{value[0]:.6g}, {value[1]:.6g}]"


def _group(found: Sequence[tuple[str, str, tuple[str, ...], str]]) -> list[Conflict]:
    groups: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for joint, quantity, values, kept in found:
        groups.setdefault((quantity, values, kept), []).append(joint)
    return [
        Conflict(quantity=quantity, joints=tuple(_both_sides(joints)), values=values, kept=kept)
        for (quantity, values, kept), joints in groups.items()
    ]


def _both_sides(joints: Sequence[str]) -> list[str]:
    """`left_knee, right_knee` as `knee`."""
    made: list[str] = []
    for joint in joints:
        other = re.sub(r"^(left|right)_", lambda match: "right_" if match[1] == "left" else "left_", joint)
        short = re.sub(r"^(left|right)_", "", joint) if other != joint and other in joints else joint
        if short not in made:
            made.append(short)
    return made


def _common_suffix(names: Sequence[str]) -> str:
    return "_joint" if names and all(name.endswith("_joint") and name != "_joint" for name in names) else ""
