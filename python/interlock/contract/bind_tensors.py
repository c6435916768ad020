"""Inputs and outputs of the graph, fed from the robot's sensors and cameras."""

from __future__ import annotations

from typing import Any

from interlock.contract.bind_joints import JointMap, convert
from interlock.contract.binding import Scope
from interlock.contract.expand_contract import GOAL_UNITS
from interlock.contract.expanded import ImageX, NoiseX, StateX, TermsX, TermX, TokensX
from interlock.contract.units import per_time, si_per

RESIZE = {"none": "none", "opencv_nearest": "nearest", "opencv_linear": "bilinear", "opencv_area": "area"}
LONGEST_TOKENS = 64  # the core's MAX_TOKENS
_NEEDS = {
    "base_lin_vel": "lin_vel",
    "base_ang_vel": "ang_vel",
    "projected_gravity": "quat",
    "joint_pos": "pos",
    "joint_pos_rel": "pos",
    "joint_vel": "vel",
}
_TRANSPARENT_STD = 1e-6  # a std below this turns sensor noise into full-scale input


def bind_inputs(scope: Scope, joints: JointMap | None) -> list[dict[str, Any]]:
    """The plan's `inputs`."""
    _check_cameras(scope)
    made: list[dict[str, Any]] = []
    for each in scope.c.inputs:
        if isinstance(each, TermsX):
            made.append(_terms(scope, each, joints))
        elif isinstance(each, ImageX):
            made.append(_image(scope, each))
        elif isinstance(each, TokensX):
            made.append(_tokens(scope, each))
        elif isinstance(each, StateX):
            if each.on_dropped_chunk != "keep":
                place = scope.contract.where("state", each.name, "on_dropped_chunk")
                scope.refuse("not-served", place, expected="keep", got=each.on_dropped_chunk)
            made.append({"kind": "state", "name": each.name, "shape": list(each.shape), "output": each.next})
        elif isinstance(each, NoiseX):
            made.append({"kind": "noise", "name": each.name, "shape": list(each.shape), "seed": each.seed})
    return made


def bind_outputs(scope: Scope, joints: JointMap | None) -> list[dict[str, Any]]:
    """The plan's `outputs`."""
    made: list[dict[str, Any]] = []
    for each in scope.c.outputs:
        action = None
        if each.action is not None:
            si_per_unit = [si_per(unit) for unit in each.action.unit]
            if joints is not None and each.action.kind == "joint_position_target":
                _note_action_units(scope, each.name, joints)
            action = {
                "clip": _pair(each.action.clip),
                "scale": list(each.action.scale),
                "offset": list(each.action.offset),
                "si_per_unit": si_per_unit,
                "relative": each.action.relative,
            }
        output: dict[str, Any] = {"name": each.name, "shape": list(each.shape), "role": each.role, "action": action}
        if each.period_ms is not None:
            output["period_ns"] = round(each.period_ms * 1e6)
        made.append(output)
    return made


def bind_goal(scope: Scope) -> dict[str, Any]:
    """The plan's `goal`."""
    goals = scope.c.goals
    velocity, slew = None, None
    if goals.velocity is not None:
        factors = [si_per(unit) for unit, _, _ in goals.velocity]
        velocity = [[low * f, high * f] for (_, (low, high), _), f in zip(goals.velocity, factors, strict=True)]
        slews = [each for _, _, each in goals.velocity]
        if all(each is not None for each in slews):
            slew = [float(each or 0.0) * f for each, f in zip(slews, factors, strict=True)]
        elif any(each is not None for each in slews):
            place = scope.contract.where("goals", "velocity")
            scope.refuse("missing-key", place, expected="`slew_per_s` for all three parts, or for none", got="some")
    timeout_ms = scope.choose(
        "choices.goal_timeout_ms", scope.contract.choices.goal_timeout_ms, 0.0, "a goal stands until replaced"
    )
    return {
        "velocity": velocity,
        "slew_per_s": slew,
        "text": goals.tasks is not None,
        "timeout_ns": round(timeout_ms * 1e6),
    }


def gives(scope: Scope, quantity: str) -> bool:
    """Whether some sensor of the robot measures it."""
    return any(quantity in sensor["gives"] for sensor in scope.r.sensors.values())


def _terms(scope: Scope, block: TermsX, joints: JointMap | None) -> dict[str, Any]:
    for index, term in enumerate(block.terms):
        needed = _NEEDS.get(term.term)
        if needed is not None and not gives(scope, needed):
            where = scope.contract.where("inputs", block.name, *(("terms", index) if len(block.terms) > 1 else ()))
            given = sorted({key for sensor in scope.r.sensors.values() for key in sensor["gives"]})
            expected = f"a sensor that gives {needed}, for {term.term}"
            scope.refuse("sensor-missing", where, expected=expected, got=", ".join(given))
        _check_frame(scope, block, index, term)
        _note_units(scope, term, joints)
    _note_normalisation(scope, block)
    return {
        "kind": "terms",
        "name": block.name,
        "terms": [_term(term) for term in block.terms],
        "history": {
            "steps": block.steps,
            "per_term": block.per_term,
            "oldest_first": block.oldest_first,
            "repeat_first": block.repeat_first,
        },
        "clip": _pair(block.clip),
    }


def _term(term: TermX) -> dict[str, Any]:
    kind: Any = term.term
    if term.term == "goal":
        kind = {"goal": {"part": [list(GOAL_UNITS).index(part) for part in term.parts]}}
    elif term.term == "last_action":
        kind = {"last_action": {"of": term.of}}
    elif term.term == "phase":
        below, at_rad = term.still if term.still is not None else (0.0, None)
        kind = {
            "phase": {
                "cos": term.of == "cos",
                "freq_hz": term.freq_hz,
                "init_rad": list(term.init_rad),
                "still_rad": at_rad,
                "still_below": below,
            }
        }
    return {
        "term": kind,
        "dim": term.dim,
        "per_si": [1 / si_per(unit) for unit in term.unit],
        "clip": _pair(term.clip),
        "offset": list(term.offset),
        "scale": list(term.scale),
    }


def _check_frame(scope: Scope, block: TermsX, index: int, term: TermX) -> None:
    if not term.term.startswith("base_") and term.term != "projected_gravity":
        return
    for name, sensor in scope.r.sensors.items():
        if _NEEDS[term.term] in sensor["gives"] and sensor["frame"] != "base":
            where = scope.contract.where("inputs", block.name, "terms", index)
            got = f"{sensor['frame']} (sensors.{name})"
            scope.refuse("frame-mismatch", where, expected="a sensor in the frame base", got=got)


def _note_units(scope: Scope, term: TermX, joints: JointMap | None) -> None:
    if joints is None or not term.term.startswith("joint_"):
        return
    power = 1 if term.term == "joint_vel" else 0
    groups: dict[tuple[str, str], list[str]] = {}
    for name, unit, index in zip(scope.c.joints.names, term.unit, joints.policy_from_robot, strict=True):
        robot_unit = per_time(scope.r.unit[index], power)
        if robot_unit != unit:
            groups.setdefault((robot_unit, unit), []).append(name)
    for (robot_unit, unit), names in groups.items():
        convert(scope, term.term, tuple(names), robot_unit, unit)


def _note_action_units(scope: Scope, name: str, joints: JointMap) -> None:
    groups: dict[tuple[str, str], list[str]] = {}
    units = zip(scope.c.joints.names, scope.action.unit, joints.policy_from_robot, strict=True)
    for joint, unit, index in units:
        if unit != scope.r.unit[index]:
            groups.setdefault((scope.r.unit[index], unit), []).append(joint)
    for (robot_unit, unit), names in groups.items():
        convert(scope, name, tuple(names), robot_unit, unit)


def _note_normalisation(scope: Scope, block: TermsX) -> None:
    for term in block.terms:
        if not term.term.startswith("joint_"):
            continue
        for name, scale in zip(scope.c.joints.names, term.scale, strict=True):
            if abs(scale) > 1 / _TRANSPARENT_STD:
                scope.notes.append(f"{block.name}: {name} never moved in training (std 0): noise of it is amplified")


def _check_cameras(scope: Scope) -> None:
    used: dict[str, str] = {}
    cameras = {camera["name"]: camera for camera in scope.r.cameras}
    for each in scope.c.inputs:
        if not isinstance(each, ImageX):
            continue
        where = scope.contract.where("inputs", each.name)
        camera = cameras.get(each.camera)
        if camera is None:
            known = ", ".join(cameras) or "no camera"
            scope.refuse("camera-missing", where, expected=f"one of {known}", got=each.camera)
        else:
            size = tuple(camera["size_hw"])
            if size != tuple(each.from_hw):
                expected = f"{each.from_hw[0]}x{each.from_hw[1]} pictures (height x width)"
                scope.refuse("image-mismatch", where, expected=expected, got=f"{size[0]}x{size[1]} from {each.camera}")
        own = each.name.replace("/", ".").rsplit(".", 1)[-1]
        if own in cameras and own != each.camera:
            scope.refuse("camera-swapped", where, expected=f"camera: {own}", got=each.camera)
        if each.camera in used:
            scope.refuse("camera-twice", where, got=f"{each.camera}, which {used[each.camera]} reads already")
        used[each.camera] = each.name


def _image(scope: Scope, block: ImageX) -> dict[str, Any]:
    names = [camera["name"] for camera in scope.r.cameras]
    if block.resize == "opencv_area" and any(a > b for a, b in zip(block.size_hw, block.from_hw, strict=True)):
        where = scope.contract.where("inputs", block.name)
        scope.refuse("image-mismatch", where, expected="opencv_area only for shrinking", got="a larger picture")
    return {
        "kind": "image",
        "name": block.name,
        "camera": names.index(block.camera) if block.camera in names else 0,
        "height": block.size_hw[0],
        "width": block.size_hw[1],
        "bgr": block.color == "bgr",
        "chw": block.layout == "chw",
        "resize": RESIZE[block.resize],
        "range": list(block.range),
        "mean": list(block.mean),
        "std": [each + block.eps for each in block.std],
        "uint8": block.dtype == "uint8",
    }


def _tokens(scope: Scope, block: TokensX) -> dict[str, Any]:
    language = scope.c.language or {}
    length = block.shape[1]
    where = scope.contract.where("language")
    if language.get("padding_side") == "left":
        scope.refuse("not-served", where, expected="padding_side: right", got="left")
    if length > LONGEST_TOKENS:
        scope.refuse("not-served", where, expected=f"at most {LONGEST_TOKENS} tokens", got=str(length))
    if block.mask:
        return {"kind": "token_mask", "name": block.name, "length": length}
    return {"kind": "tokens", "name": block.name, "length": length, "pad_id": int(language.get("pad_id", 0))}


def _pair(value: tuple[float, float] | None) -> list[float] | None:
    return None if value is None else [float(value[0]), float(value[1])]
