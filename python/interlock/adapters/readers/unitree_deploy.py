"""`deploy.yaml` beside `policy.onnx`, as unitree_rl_lab and its kin export them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.contract.yaml_text import load_data, python_tags
from interlock.errors import InterlockError
from interlock.ports.reader import Answers, Ask, Fact, Framework, Reading, SourceView

from .facts import (
    Questions,
    by_convention,
    contradiction,
    from_file,
    from_robot,
    numbers,
    one_if_equal,
    single_io,
    velocity_choices,
    without_suffix,
)

FILE = "deploy.yaml"
_SIZE = {"joints": 0, "base": 3, "goal": 3}

# Isaac Lab's names of observation terms -> ours, with unit and what decides their size.
_TERMS: dict[str, tuple[dict[str, Any], str]] = {
    "base_lin_vel": ({"term": "base_lin_vel", "unit": "m/s", "frame": "base"}, "base"),
    "base_ang_vel": ({"term": "base_ang_vel", "unit": "rad/s", "frame": "base"}, "base"),
    "projected_gravity": ({"term": "projected_gravity", "unit": 1, "frame": "base"}, "base"),
    "velocity_commands": ({"term": "goal", "of": "velocity"}, "goal"),
    "generated_commands": ({"term": "goal", "of": "velocity"}, "goal"),
    "joint_pos_rel": ({"term": "joint_pos_rel", "unit": "rad"}, "joints"),
    "joint_pos": ({"term": "joint_pos", "unit": "rad"}, "joints"),
    "joint_vel_rel": ({"term": "joint_vel", "unit": "rad/s"}, "joints"),
    "joint_vel": ({"term": "joint_vel", "unit": "rad/s"}, "joints"),
    "last_action": ({"term": "last_action", "of": "raw"}, "joints"),
}
_KINDS = {
    "JointPositionAction": ("joint_position_target", "rad"),
    "JointVelocityAction": ("joint_velocity_target", "rad/s"),
    "JointEffortAction": ("joint_torque", "N*m"),
}
_EXPORTER = "convention of unitree_rl_lab"


class UnitreeDeployReader:
    """Reads facts from `deploy.yaml`, joint names from the robot file."""

    name = "unitree-deploy"
    version = 1
    framework = Framework(kind="onnx")

    def claims(self, source: SourceView) -> str:
        """A `deploy.yaml` with `joint_ids_map`, and an ONNX file."""
        deploys = [name for name in source.names if name.rpartition("/")[2] == FILE]
        if len(deploys) != 1 or not source.ending(".onnx"):
            return ""
        return f"{deploys[0]} beside an ONNX file" if b"joint_ids_map" in source.read(deploys[0]) else ""

    def read(self, source: SourceView, answers: Answers) -> Reading:
        """Everything but the names of the joints stands in the file.

        Raises:
            InterlockError: `source-contradiction`, `not-served`, `term-unknown`, `yaml-…`.
        """
        file = next(name for name in source.names if name.rpartition("/")[2] == FILE)
        graphs = source.ending(".onnx")
        if len(graphs) != 1:
            raise contradiction(source.label, "one ONNX file", ", ".join(graphs))
        try:
            text = source.read(file).decode("utf-8")
        except UnicodeDecodeError:
            raise contradiction(file, "UTF-8 text", "other bytes") from None
        deploy = load_data(text, file, python_tags_as_data=True)
        if not isinstance(deploy, dict):
            raise contradiction(file, "a mapping", type(deploy).__name__)
        read = _Deploy(deploy)
        questions = Questions(answers)
        drives = _drive_names(source, questions, len(read.order))
        graph = source.graph(graphs[0])
        tree = read.tree(source, drives, single_io(graph, graphs[0]))
        notes = ["stiffness and damping are in SDK motor order, everything else in policy order: read so"]
        notes += [f"python tag {tag} read as data, not executed" for _, tag in python_tags(text, file)]
        return Reading(
            files=(file, graphs[0], *(_beside(graphs[0], each.name) for each in graph.external)),
            framework=Framework(kind="onnx", graph=graphs[0]),
            tree=tree,
            asks=tuple(questions.open),
            answered=tuple(questions.taken),
            notes=tuple(notes),
        )


def _beside(graph: str, name: str) -> str:
    folder = graph.rpartition("/")[0]
    return f"{folder}/{name}" if folder else name


def _drive_names(source: SourceView, questions: Questions, count: int) -> list[Fact]:
    """Names of the drives in SDK motor order."""
    if source.robot is not None:
        if len(source.robot.joints) != count:
            raise contradiction(
                f"{FILE}:joint_ids_map", f"{len(source.robot.joints)} joints, as the robot has", str(count)
            )
        return [from_robot(name, "joints.order") for name in source.robot.joints]
    ask = Ask(
        key="joint_names",
        question="full joint names, in the order of the SDK's motor indices",
        look="the robot file (--robot), or the SDK's motor index table",
        kind="list",
    )
    fact = questions.fact(ask)
    if fact.value == "ask":
        return [Fact(f"joint_{index}", fact.origin) for index in range(count)]
    names = [str(each) for each in fact.value]
    if len(names) != count or len(set(names)) != count:
        raise contradiction("answers: joint_names", f"{count} different names", str(len(names)))
    return [Fact(name, fact.origin) for name in names]


class _Deploy:
    """The parsed file."""

    def __init__(self, deploy: dict[str, Any]) -> None:
        self._deploy = deploy
        order = self._get("joint_ids_map")
        if not isinstance(order, list) or sorted(map(str, order)) != sorted(map(str, range(len(order)))):
            raise contradiction(f"{FILE}:joint_ids_map", "every motor index once", str(order)[:80])
        self.order: list[int] = order

    def _get(self, *path: str) -> Any:
        found: Any = self._deploy
        for key in path:
            if not isinstance(found, dict) or key not in found:
                raise contradiction(FILE, f"the key {'.'.join(path)}", "none")
            found = found[key]
        return found

    def tree(self, source: SourceView, drives: list[Fact], io: tuple[str, int, str, int]) -> dict[str, Any]:
        """The contract."""
        input_name, width, output_name, actions = io
        count = len(self.order)
        if actions != count:
            raise contradiction("policy.onnx", f"{count} actions, one per joint", str(actions))
        names, suffix = without_suffix([drives[index].value for index in self.order])
        kind, default = self._action(count)
        terms, history = self._terms(count, width)
        step = self._get("step_dt")
        if not isinstance(step, (int, float)) or not 0 < step < 10:
            raise contradiction(f"{FILE}:step_dt", "seconds", str(step)[:40])
        trained_for = (
            from_robot(source.robot.type, "type") if source.robot else by_convention("unitree", "no robot given")
        )
        order = Fact(names, drives[0].origin)
        return {
            "name": by_convention(source.label, "name of the source"),
            "trained_for": trained_for,
            "source": {
                "reader": by_convention(UnitreeDeployReader.name, "what read it"),
                "files": by_convention("source/", "policy folder"),
            },
            "timing": {
                "control_period_ms": from_file(_milliseconds(step), f"{FILE}:step_dt"),
                "chunk": from_file(1, "policy.onnx:outputs"),
                "action_delay_ms": by_convention(0, f"{_EXPORTER}: an action takes effect in its own step"),
            },
            "joints": {
                "order": order,
                "name_suffix": Fact(suffix, drives[0].origin),
                "unit": by_convention({"default": "rad", "kp": "N*m/rad", "kd": "N*m*s/rad"}, _EXPORTER),
                "each": self._rows(names, default),
            },
            "inputs": {
                input_name: {
                    "dtype": from_file("float32", "policy.onnx:inputs"),
                    "history": history,
                    "clip": by_convention("none", _EXPORTER),
                    "terms": terms,
                }
            },
            "state": from_file("none", "policy.onnx:inputs"),
            "noise": from_file("none", "policy.onnx:inputs"),
            "language": from_file("none", "policy.onnx:inputs"),
            "outputs": {output_name: kind},
            "goals": {"velocity": self._goal()},
            "choices": velocity_choices(),
        }

    def _rows(self, names: Sequence[str], default: list[float]) -> dict[str, Any]:
        """Gains stand in SDK motor order: the motor of policy joint i is `joint_ids_map[i]`."""
        stiffness = numbers(self._get("stiffness"), len(names), f"{FILE}:stiffness")
        damping = numbers(self._get("damping"), len(names), f"{FILE}:damping")
        place = f"{FILE}:default_joint_pos, stiffness, damping"
        return {
            name: from_file({"default": default[i], "kp": stiffness[motor], "kd": damping[motor]}, place)
            for i, (name, motor) in enumerate(zip(names, self.order, strict=True))
        }

    def _action(self, count: int) -> tuple[dict[str, Any], list[float]]:
        default = numbers(self._get("default_joint_pos"), count, f"{FILE}:default_joint_pos")
        actions = self._get("actions")
        if not isinstance(actions, dict) or len(actions) != 1:
            raise _not_served(f"{FILE}:actions", "one action term", ", ".join(map(str, actions)))
        word, action = next(iter(actions.items()))
        if word not in _KINDS or not isinstance(action, dict):
            raise _not_served(f"{FILE}:actions", " or ".join(_KINDS), str(word))
        place = f"{FILE}:actions.{word}"
        ids = action.get("joint_ids")
        everything = ids in (None, [None, None, None], list(range(count)))
        if not everything:
            raise _not_served(f"{place}.joint_ids", "all joints in policy order", str(ids)[:80])
        kind, unit = _KINDS[word]
        offset = numbers(action.get("offset", 0.0), count, f"{place}.offset")
        shown: Any = "default" if kind == "joint_position_target" and offset == default else one_if_equal(offset)
        return {
            "role": from_file("action", "policy.onnx:outputs"),
            "kind": from_file(kind, place),
            "unit": by_convention(unit, _EXPORTER),
            "scale": from_file(one_if_equal(numbers(action.get("scale"), count, f"{place}.scale")), f"{place}.scale"),
            "offset": from_file(shown, f"{place}.offset"),
            "clip": from_file(_clip(action.get("clip"), f"{place}.clip"), f"{place}.clip"),
        }, default

    def _terms(self, count: int, width: int) -> tuple[list[Fact], Any]:
        listed = self._get("observations")
        if not isinstance(listed, dict) or not listed:
            raise contradiction(f"{FILE}:observations", "observation terms", str(listed)[:40])
        terms: list[Fact] = []
        steps: set[int] = set()
        total = 0
        for word, each in listed.items():
            place = f"{FILE}:observations.{word}"
            if word not in _TERMS or not isinstance(each, dict):
                raise InterlockError(
                    code="term-unknown",
                    where=place,
                    expected=f"one of {', '.join(_TERMS)}",
                    got=str(word),
                    hint="an observation is never made up; write the contract by hand and pass it with --contract",
                )
            ours, size_of = _TERMS[word]
            size = _SIZE[size_of] or count
            scale = one_if_equal(numbers(each.get("scale", 1.0), size, f"{place}.scale"))
            row = {**ours, "scale": scale}
            clip = _clip(each.get("clip"), f"{place}.clip")
            terms.append(from_file(row if clip == "none" else {**row, "clip": clip}, place))
            length = each.get("history_length", 1) or 1
            steps.add(length if isinstance(length, int) and 0 < length <= 1000 else -1)
            total += size
        if len(steps) != 1 or -1 in steps:
            raise _not_served(f"{FILE}:observations", "one history length for all terms", str(sorted(steps)))
        (kept,) = steps
        if total * kept != width:
            raise contradiction("policy.onnx", f"an input of {total} x {kept} numbers, as {FILE} says", str(width))
        if kept == 1:
            return terms, from_file("none", f"{FILE}:observations.*.history_length")
        return terms, {
            "steps": from_file(kept, f"{FILE}:observations.*.history_length"),
            "layout": by_convention("per_term", f"{_EXPORTER}: all steps of one term stand together"),
            "order": by_convention("oldest_first", _EXPORTER),
            "at_reset": by_convention("repeat_first", f"{_EXPORTER}: filled with the first observation"),
        }

    def _goal(self) -> dict[str, Any]:
        place = f"{FILE}:commands.base_velocity.ranges"
        ranges = self._get("commands", "base_velocity", "ranges")
        units = {"lin_vel_x": "m/s", "lin_vel_y": "m/s", "ang_vel_z": "rad/s"}
        if not isinstance(ranges, dict):
            raise contradiction(place, "ranges", str(ranges)[:40])
        return {
            part: from_file({"unit": unit, "range": numbers(ranges.get(part), 2, f"{place}.{part}")}, place)
            for part, unit in units.items()
        }


def _milliseconds(seconds: float) -> float | int:
    """Rounded to the picosecond, so that 0.02 s is 20 ms."""
    exact = round(seconds * 1000, 9)
    return int(exact) if exact == int(exact) else exact


def _clip(value: Any, where: str) -> Any:
    if value is None:
        return "none"
    if isinstance(value, list) and value and all(isinstance(each, list) and each == value[0] for each in value):
        value = value[0]  # one range per joint, all the same
    return numbers(value, 2, where)


def _not_served(where: str, expected: str, got: str) -> InterlockError:
    return InterlockError(
        code="not-served",
        where=where,
        expected=expected,
        got=got,
        hint="write the contract by hand and pass it with --contract",
    )
