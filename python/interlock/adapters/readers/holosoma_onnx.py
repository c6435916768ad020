"""ONNX files of holosoma: gains, joint names and goal ranges in the metadata, the rest in its own configuration."""

from __future__ import annotations

import json
from typing import Any

from interlock.ports.reader import Answers, Ask, Candidate, Fact, Framework, GraphFacts, Origin, Reading, SourceView

from .facts import (
    Questions,
    by_convention,
    contradiction,
    from_file,
    from_robot,
    numbers,
    single_io,
    velocity_choices,
    without_suffix,
)

_NEEDED = ("dof_names", "kp", "kd")
_EXPORTER = "convention of holosoma_inference"
_PI = 3.141592653589793
_PHASE = {"init_rad": [0, _PI], "still": {"below": 0.01, "at_rad": _PI}}

# holosoma's names of observation terms -> ours and their size (0: one per joint).
_TERMS: dict[str, tuple[dict[str, Any], int]] = {
    "actions": ({"term": "last_action", "of": "clipped"}, 0),
    "base_ang_vel": ({"term": "base_ang_vel", "unit": "rad/s", "frame": "base"}, 3),
    "base_lin_vel": ({"term": "base_lin_vel", "unit": "m/s", "frame": "base"}, 3),
    "command_ang_vel": ({"term": "goal", "of": "velocity", "parts": ["ang_vel_z"]}, 1),
    "command_lin_vel": ({"term": "goal", "of": "velocity", "parts": ["lin_vel_x", "lin_vel_y"]}, 2),
    "cos_phase": ({"term": "phase", "of": "cos"}, 2),
    "dof_pos": ({"term": "joint_pos_rel", "unit": "rad"}, 0),
    "dof_vel": ({"term": "joint_vel", "unit": "rad/s"}, 0),
    "projected_gravity": ({"term": "projected_gravity", "unit": 1, "frame": "base"}, 3),
    "sin_phase": ({"term": "phase", "of": "sin"}, 2),
}
_PHASES = {"cos_phase", "sin_phase"}
_GOALS = (("lin_vel_x", "lin_vel_x", "m/s"), ("lin_vel_y", "lin_vel_y", "m/s"), ("ang_vel_z", "ang_vel_yaw", "rad/s"))

# What the exporter's own configuration for walking on this machine type lists: shown as a candidate, never taken.
_WALKING = {
    "base_ang_vel": 0.25, "projected_gravity": 1.0, "command_lin_vel": 1.0, "command_ang_vel": 1.0, "dof_pos": 1.0,
    "dof_vel": 0.05, "actions": 1.0, "sin_phase": 1.0, "cos_phase": 1.0,
}  # fmt: skip


class HolosomaReader:
    """Takes what the metadata says; asks for what stands only in the training configuration."""

    name = "holosoma-onnx"
    version = 1
    framework = Framework(kind="onnx")

    def claims(self, source: SourceView) -> str:
        """An ONNX file whose metadata names joints and gains."""
        for name in source.ending(".onnx"):
            if all(key in source.graph(name).metadata for key in _NEEDED):
                return f"{name} carries dof_names, kp and kd"
        return ""

    def read(self, source: SourceView, answers: Answers) -> Reading:
        """Joints, gains and ranges from the file; terms, scales, default pose, rate are asked.

        Raises:
            InterlockError: `source-contradiction`, `not-served`, `answer-kind`.
        """
        file = next(
            each for each in source.ending(".onnx") if all(key in source.graph(each).metadata for key in _NEEDED)
        )
        graph = source.graph(file)
        joints = [str(each) for each in _json(graph, "dof_names", file, list)]
        input_name, width, output_name, actions = single_io(graph, file)
        if actions != len(joints) or len(set(joints)) != len(joints):
            raise contradiction(file, f"{actions} different joint names", f"{len(joints)}")
        questions = Questions(answers)
        terms = _terms(questions, file, width, len(joints))
        names, suffix = without_suffix(joints)
        tree = {
            "name": by_convention(source.label.replace("_", "-"), "name of the source"),
            "trained_for": _robot_type(source, questions),
            "source": {
                "reader": by_convention(self.name, "what read it"),
                "files": by_convention("source/", "policy folder"),
            },
            "timing": {
                "control_rate_hz": questions.fact(_RATE),
                "chunk": from_file(1, f"{file}:outputs"),
                "action_delay_ms": by_convention(0, f"{_EXPORTER}: an action takes effect in its own step"),
            },
            "joints": {
                "order": from_file(names, f"{file}:dof_names"),
                "name_suffix": from_file(suffix, f"{file}:dof_names"),
                "unit": by_convention({"default": "rad", "kp": "N*m/rad", "kd": "N*m*s/rad"}, _EXPORTER),
                "each": _rows(graph, file, joints, names, questions),
            },
            "inputs": {
                input_name: {
                    "dtype": from_file("float32", f"{file}:inputs"),
                    "history": from_file("none", f"{file}:inputs"),
                    "clip": by_convention("none", _EXPORTER),
                    "terms": terms,
                }
            },
            "state": from_file("none", f"{file}:inputs"),
            "noise": from_file("none", f"{file}:inputs"),
            "language": from_file("none", f"{file}:inputs"),
            "outputs": {
                output_name: {
                    "role": from_file("action", f"{file}:outputs"),
                    "kind": by_convention("joint_position_target", _EXPORTER),
                    "unit": by_convention("rad", _EXPORTER),
                    "scale": questions.fact(_SCALE),
                    "offset": by_convention("default", _EXPORTER),
                    "clip": by_convention([-100, 100], f"{_EXPORTER}: of the raw action"),
                }
            },
            "goals": {"velocity": _goals(graph, file)},
            "choices": velocity_choices(),
        }
        return Reading(
            files=(file,),
            framework=Framework(kind="onnx", graph=file),
            tree=tree,
            asks=tuple(questions.open),
            answered=tuple(questions.taken),
            notes=(
                "observation terms are concatenated alphabetically by their upstream names: read so",
                "`heading` in command_ranges belongs to a controller of the training, not to the policy: left out",
                *questions.notes,
            ),
        )


_RATE = Ask(
    key="control_rate_hz",
    question="how often per second the policy is asked",
    look="holosoma_inference task configuration: rl_rate",
    candidates=(Candidate(50, "rl_rate of the exporter's walking tasks"),),
    kind="number",
)
_SCALE = Ask(
    key="action_scale",
    question="rad per unit of the raw action",
    look="holosoma_inference task configuration: policy_action_scale",
    candidates=(Candidate(0.25, "policy_action_scale of the exporter's walking tasks"),),
    kind="number",
)
_GAIT = Ask(
    key="gait_period_s",
    question="period of the phase clock",
    look="holosoma_inference task configuration: gait_period",
    candidates=(Candidate(1.0, "gait_period of the exporter's walking tasks"),),
    kind="number",
)
_TYPE = Ask(
    key="trained_for",
    question="machine type, as `type` in the robot file",
    look="the robot file (--robot)",
    kind="text",
)


def _robot_type(source: SourceView, questions: Questions) -> Fact:
    return from_robot(source.robot.type, "type") if source.robot else questions.fact(_TYPE)


def _json(graph: GraphFacts, key: str, file: str, kind: type) -> Any:
    try:
        value = json.loads(graph.metadata[key])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise contradiction(f"{file}:{key}", f"a JSON {kind.__name__}", graph.metadata[key][:60])
    return value


def _terms(questions: Questions, file: str, width: int, joints: int) -> list[Fact]:
    fitting = sum(_TERMS[word][1] or joints for word in _WALKING)
    arithmetic = "" if fitting == width else "not "
    fact = questions.fact(
        Ask(
            key="observations",
            question="every observation term by its upstream name, with its scale",
            look="holosoma_inference observation configuration: obs_dict, obs_scales",
            candidates=(
                Candidate(
                    dict(_WALKING), f"loco-g1-29dof: {fitting} numbers, {arithmetic}the {width} that the graph takes"
                ),
            ),
            kind="mapping",
        )
    )
    if fact.value == "ask":
        return []
    strange = sorted(set(map(str, fact.value)) - set(_TERMS))
    if strange or not fact.value:
        raise contradiction("answers: observations", f"terms out of {', '.join(_TERMS)}", ", ".join(strange) or "none")
    size = sum(_TERMS[word][1] or joints for word in fact.value)
    if size != width:
        raise contradiction("answers: observations", f"{width} numbers, as {file} takes", str(size))
    period = questions.fact(_GAIT) if _PHASES & set(fact.value) else None
    found = []
    for word in sorted(fact.value):  # the convention: alphabetical, whatever order the configuration lists
        (scale,) = numbers(fact.value[word], 1, f"answers: observations.{word}")
        row = {**_TERMS[word][0], "scale": scale}
        if word in _PHASES and period is not None:
            row |= {"period_s": period.value, **_PHASE}
        found.append(Fact(row, Origin("person", f"scale; order by {_EXPORTER}")))
    return found


def _rows(graph: GraphFacts, file: str, joints: list[str], names: list[str], questions: Questions) -> dict[str, Any]:
    kp = numbers(_json(graph, "kp", file, list), len(joints), f"{file}:kp")
    kd = numbers(_json(graph, "kd", file, list), len(joints), f"{file}:kd")
    fact = questions.fact(
        Ask(
            key="default_joint_pos",
            question="default joint position in rad: a list in the order of dof_names, or a mapping by joint name",
            look="holosoma_inference robot configuration: default_dof_angles",
        )
    )
    default: list[float] | list[str] = ["ask"] * len(joints)
    if fact.value != "ask":
        given = fact.value
        if isinstance(given, dict):
            missing = sorted({*joints} ^ {*map(str, given)})
            if missing:
                raise contradiction("answers: default_joint_pos", "every joint once", ", ".join(missing[:6]))
            given = [given[name] for name in joints]
        default = numbers(given, len(joints), "answers: default_joint_pos")
    origin = Origin("file", f"{file}:kp, kd; default: a person")
    return {name: Fact({"default": default[i], "kp": kp[i], "kd": kd[i]}, origin) for i, name in enumerate(names)}


def _goals(graph: GraphFacts, file: str) -> dict[str, Any]:
    if "command_ranges" not in graph.metadata:
        raise contradiction(f"{file}: metadata", "command_ranges", "none")
    ranges = _json(graph, "command_ranges", file, dict)
    place = f"{file}:command_ranges"
    return {
        ours: from_file({"unit": unit, "range": numbers(ranges.get(theirs), 2, f"{place}.{theirs}")}, place)
        for ours, theirs, unit in _GOALS
    }
