"""What a person wrote, held against what the checkpoint's own files say: neither is picked quietly over the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from interlock.artifact.folder import PolicyFolder
from interlock.artifact.onnx_file import read_graph
from interlock.contract.expanded import ContractX, TermsX
from interlock.contract.graph import check_graph
from interlock.contract.units import si_per
from interlock.errors import InterlockError, Problem
from interlock.ports.reader import Fact, GraphFacts, Reader, Reading, RobotNames, SourceView

BARE = "onnx"  # the reader that believes a person
_STATED = ("file", "robot")  # a list of motor indices becomes names through the robot file
_TOLERANCE = 1e-6  # relative; files round
_HINT = "correct the contract; where the file is the wrong one: freeze --contract FILE --reader onnx"


def contradictions(given: ContractX, reading: Reading) -> list[Problem]:
    """Facts that stand in the checkpoint's files and differ in a contract.

    Order of joints, default pose, gains, rate, observation terms with their scales, history, action and goal ranges
    are compared, as far as the files state them; what a reader knows by convention or from a person is not.
    """
    tree = reading.tree
    found: list[Problem] = []
    if tree:
        found.extend(_timing(given, tree["timing"]))
        found.extend(_joints(given, tree["joints"], by_place="joint_names" in {ask.key for ask in reading.asks}))
        found.extend(_inputs(given, tree["inputs"]))
        found.extend(_outputs(given, tree["outputs"]))
        found.extend(_goals(given, tree["goals"]))
    return found


def knowing_reading(view: SourceView, readers: Sequence[Reader]) -> Reading | None:
    """What a reader that knows this kind of checkpoint finds in it; None where none does, or cannot read this one."""
    for each in readers:
        if each.name != BARE and each.claims(view):
            try:
                return each.read(view, {})
            except InterlockError:
                return None  # such as a term that nobody knows yet: the contract was written by hand because of it
    return None


def folder_contradictions(
    folder: PolicyFolder, contract: ContractX, readers: Sequence[Reader], robot: RobotNames | None
) -> list[Problem]:
    """The same for a policy folder whose contract was edited, and whether its tensors are still those of the graph.

    Args:
        folder: The policy folder.
        contract: Its contract, written out.
        readers: All readers.
        robot: What a reader may take from the robot file.
    """
    if not (folder.edited or folder.lock.contract_edited):
        return []
    found: list[Problem] = []
    graph = folder.lock.framework.graph
    if graph:
        facts = _graph(folder, graph)
        shapes = [[(each.name, each.dtype, each.shape) for each in side] for side in (facts.inputs, facts.outputs)]
        found.extend(check_graph(contract, *shapes))
    reader = next((each for each in readers if each.name == folder.lock.reader.name), None)
    if reader is not None and reader.name != BARE:
        view = SourceView(
            label=folder.lock.name,
            names=tuple(name.removeprefix("source/") for name in folder.names("source/")),
            read=lambda name: folder.read(f"source/{name}"),
            graph=lambda name: _graph(folder, name),
            robot=robot,
        )
        found.extend(
            contradictions(contract, reader.read(view, {each.key: each.value for each in folder.lock.answers}))
        )
    return found


def _graph(folder: PolicyFolder, name: str) -> GraphFacts:
    return read_graph(folder.read(f"source/{name}"))


def _differs(path: str, fact: Fact, expected: str, got: str) -> Iterator[Problem]:
    if fact.origin.kind in _STATED:
        place = fact.origin.detail if fact.origin.kind == "file" else f"robot file: {fact.origin.detail}"
        yield Problem(
            code="contract-contradiction",
            where=f"contract.yaml {path}",
            expected=f"{expected} ({place})",
            got=got,
            hint=_HINT,
        )


def _timing(given: ContractX, timing: Mapping[str, Fact]) -> Iterator[Problem]:
    period_ms, rate_hz = timing.get("control_period_ms"), timing.get("control_rate_hz")
    fact = period_ms or rate_hz
    if fact is None or fact.value == "ask":
        return
    stated = Fraction(str(fact.value)) / 1000 if fact is period_ms else 1 / Fraction(str(fact.value))
    if not _near(float(stated), float(given.timing.period_s)):
        yield from _differs("timing", fact, _rate(float(stated)), _rate(float(given.timing.period_s)))


def _rate(period_s: float) -> str:
    return f"{period_s * 1000:g} ms ({1 / period_s:g} Hz)"


def _joints(given: ContractX, joints: Mapping[str, Any], *, by_place: bool) -> Iterator[Problem]:
    """Names, then the numbers of each joint. `by_place`: the files do not name the joints."""
    suffix = joints["name_suffix"].value if "name_suffix" in joints else ""
    names = tuple(f"{name}{suffix}" for name in joints["order"].value)
    if by_place and len(names) == len(given.joints.names):
        names = given.joints.names
    if names != given.joints.names:
        place = next((i for i, pair in enumerate(zip(names, given.joints.names, strict=False)) if len({*pair}) > 1), -1)
        shown = [
            f"{each[place]} at place {place}" if place >= 0 else f"{len(each)}" for each in (names, given.joints.names)
        ]
        yield from _differs("joints.order", joints["order"], *shown)
    rows = list(joints["each"].values())
    for key in ("default", "kp", "kd"):
        ours = getattr(given.joints, key)
        stated = [fact.value.get(key, "ask") if isinstance(fact.value, Mapping) else "ask" for fact in rows]
        if ours is None or "ask" in stated:
            continue
        here = dict(zip(given.joints.names, ours, strict=True))
        unit = dict(zip(given.joints.names, given.joints.unit, strict=True))
        wrong = [
            (name, value)
            for name, value in zip(names, stated, strict=True)
            if name in here and not _near(value, here[name] * (si_per(unit[name]) if key == "default" else 1.0))
        ]
        if wrong:
            name, value = wrong[0]
            expected = f"{key} {value:g} for {name}"
            got = f"{here[name]:g}; {len(wrong)} of {len(names)} joints differ"
            yield from _differs("joints.each", rows[0], expected, got)


def _inputs(given: ContractX, inputs: Mapping[str, Any]) -> Iterator[Problem]:
    by_name = {each.name: each for each in given.inputs if isinstance(each, TermsX)}
    for name, block in inputs.items():
        ours = by_name.get(name)
        facts: Sequence[Fact] = block.get("terms", []) if isinstance(block, Mapping) else []
        if ours is None or not facts:
            continue
        path = f"inputs.{name}.terms"
        stated = [_word(fact.value["term"], fact.value.get("of", "")) for fact in facts]
        written = [_word(each.term, each.of) for each in ours.terms]
        if stated != written:
            yield from _differs(path, facts[0], ", ".join(stated), ", ".join(written))
            continue
        for fact, each in zip(facts, ours.terms, strict=True):
            unit = str(fact.value.get("unit", each.unit[0]))
            stated_scale, ours_scale = (
                fact.value["scale"],
                [scale * si_per(unit) / si_per(own) for scale, own in zip(each.scale, each.unit, strict=True)],
            )
            if not _all_near(stated_scale, ours_scale):
                got = f"{_short(each.scale)} per {each.unit[0]}"
                yield from _differs(f"{path} {each.term}", fact, f"scale {stated_scale} per {unit}", got)
        steps = block["history"].get("steps") if isinstance(block.get("history"), Mapping) else None
        if steps is not None and steps.value != ours.steps:
            yield from _differs(f"inputs.{name}.history", steps, f"{steps.value} steps", f"{ours.steps}")


def _word(term: str, of: str) -> str:
    return f"{term} {of}" if of in ("sin", "cos") else term


def _outputs(given: ContractX, outputs: Mapping[str, Any]) -> Iterator[Problem]:
    by_name = {each.name: each.action for each in given.outputs}
    for name, block in outputs.items():
        action = by_name.get(name)
        if action is None:
            continue
        kind, scale = block.get("kind"), block.get("scale")
        if kind is not None and kind.value != action.kind:
            yield from _differs(f"outputs.{name}.kind", kind, kind.value, action.kind)
        elif scale is not None and scale.value != "ask":
            si = [factor * si_per(unit) for factor, unit in zip(action.scale, action.unit, strict=True)]
            if not _all_near(scale.value, si):
                yield from _differs(f"outputs.{name}.scale", scale, f"{scale.value}", _short(action.scale))


def _goals(given: ContractX, goals: Mapping[str, Any]) -> Iterator[Problem]:
    parts = ("lin_vel_x", "lin_vel_y", "ang_vel_z")
    for name, fact in goals.get("velocity", {}).items():
        if given.goals.velocity is None or name not in parts:
            continue
        unit, limits, _ = given.goals.velocity[parts.index(name)]
        low, high = (each * si_per(unit) for each in limits)
        stated = fact.value["range"]
        if low < stated[0] - _TOLERANCE or high > stated[1] + _TOLERANCE:
            yield from _differs(f"goals.velocity.{name}", fact, f"inside {stated}", f"[{low:g}, {high:g}]")


def _near(one: Any, other: Any) -> bool:
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=1e-9)


def _all_near(stated: float | Sequence[float], ours: Sequence[float]) -> bool:
    values = [stated] * len(ours) if isinstance(stated, (int, float)) else stated
    return len(values) == len(ours) and all(map(_near, values, ours))


def _short(values: Sequence[float]) -> str:
    different = list(dict.fromkeys(values))
    return f"{different[0]:g}" if len(different) == 1 else ", ".join(f"{each:g}" for each in different[:4])
