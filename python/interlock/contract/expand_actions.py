"""Outputs written out."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.contract.codes import problem
from interlock.contract.expand_terms import per_element
from interlock.contract.expanded import ActionX, Numbers, OutputX, PolicyJointsX, TimingX
from interlock.contract.policy_model import ActionOutput, Contract, MinMax, PolicyRow
from interlock.contract.units import UNITS, per_time, si_per
from interlock.errors import Problem

_POWER = {"joint_position_target": 0, "joint_velocity_target": 1}


def expand_outputs(
    contract: Contract,
    joints: PolicyJointsX,
    rows: Sequence[PolicyRow] | None,
    timing: TimingX,
    problems: list[Problem],
) -> tuple[OutputX, ...]:
    """Every output, the action with numbers per joint."""
    made: list[OutputX] = []
    for name, block in contract.outputs.items():
        if isinstance(block, ActionOutput):
            shape = _action_shape(name, block, contract, len(joints.names), timing.chunk, problems)
            action = _expand_action(name, block, contract, joints, rows, problems)
            made.append(OutputX(name=name, shape=shape, dtype="float32", role="action", action=action))
        else:
            dtype = block.dtype or "float32"
            if block.period_ms is not None and block.role != "probe":
                place = contract.where("outputs", name, "period_ms")
                problems.append(problem("wrong-value", place, expected="`role: probe` beside it", got=block.role))
            made.append(
                OutputX(
                    name=name, shape=block.shape, dtype=dtype, role=block.role, action=None, period_ms=block.period_ms
                )
            )
    actions = [each.name for each in made if each.role == "action"]
    if len(actions) != 1:
        got = ", ".join(actions) or "none"
        problems.append(problem("action-missing", contract.where("outputs"), expected="one action", got=got))
    return tuple(made)


def _action_shape(
    name: str, block: ActionOutput, contract: Contract, n: int, chunk: int, problems: list[Problem]
) -> tuple[int, ...]:
    usual = (1, n) if chunk == 1 else (1, chunk, n)
    if block.shape is None or block.shape == usual:
        return usual
    if block.shape != (1, chunk, n):
        place = contract.where("outputs", name, "shape")
        problems.append(problem("shape-mismatch", place, expected=str(list(usual)), got=str(list(block.shape))))
        return usual
    return block.shape


def _expand_action(
    name: str,
    block: ActionOutput,
    contract: Contract,
    joints: PolicyJointsX,
    rows: Sequence[PolicyRow] | None,
    problems: list[Problem],
) -> ActionX:
    n = len(joints.names)
    if block.like is not None and block.unit is not None:
        place = contract.where("outputs", name, "unit")
        problems.append(problem("unit-twice", place, got=f"{block.unit} and that of the joints"))
    scale, offset = _affine(name, block, contract, joints, rows, problems)
    if block.relative_to is not None and block.kind != "joint_position_target":
        place = contract.where("outputs", name, "relative_to")
        problems.append(problem("wrong-value", place, expected="only for joint_position_target", got=block.kind))
    if block.clip is None and block.like is None:
        place = contract.where("outputs", name)
        problems.append(problem("missing-key", place, expected="the key `clip` (none, or [low, high])", got="nothing"))
    return ActionX(
        kind=block.kind,
        unit=_units(name, block, contract, joints, problems) or ("1",) * n,
        clip=None if block.clip is None or block.clip == "none" else block.clip,
        scale=scale,
        offset=offset,
        relative=block.relative_to is not None,
    )


def _units(
    name: str, block: ActionOutput, contract: Contract, joints: PolicyJointsX, problems: list[Problem]
) -> tuple[str, ...] | None:
    power = _POWER.get(block.kind)
    if block.like is not None:
        return tuple(per_time(unit, power) for unit in joints.unit) if power is not None else None
    place = contract.where("outputs", name, "unit")
    if block.unit is None:
        problems.append(problem("unit-missing", place, expected="`unit`, or `like: joints`", got="nothing"))
        return None
    if power is None:
        allowed = {"torque", "force"} if block.kind == "joint_torque" else set()
    else:
        allowed = {UNITS[per_time(unit, power)].quantity for unit in joints.unit}
    if allowed and allowed != {UNITS[block.unit].quantity} and block.kind != "joint_torque":
        expected = "a unit of " + " and ".join(sorted(allowed))
        problems.append(problem("unit-mismatch", place, expected=expected, got=block.unit))
    if block.kind == "joint_torque" and UNITS[block.unit].quantity not in allowed:
        problems.append(problem("unit-mismatch", place, expected="N*m or N", got=block.unit))
    return (block.unit,) * len(joints.names)


def _affine(
    name: str,
    block: ActionOutput,
    contract: Contract,
    joints: PolicyJointsX,
    rows: Sequence[PolicyRow] | None,
    problems: list[Problem],
) -> tuple[Numbers, Numbers]:
    n, order = len(joints.names), contract.joints.order
    path: tuple[str | int, ...] = ("outputs", name)
    if block.like is not None and block.scale is None and block.offset is None:
        return _from_statistics(path, contract, rows, n, problems)
    for key in ("scale", "offset"):
        if getattr(block, key) is None:
            expected = f"the key `{key}`"
            problems.append(problem("missing-key", contract.where(*path), expected=expected, got="nothing"))
    scale = per_element(block.scale or 0.0, n, order, (*path, "scale"), contract.where, problems)
    if block.offset == "default":
        if joints.default is None and rows is not None:
            place = contract.where(*path, "offset")
            problems.append(problem("default-missing", place, got="`offset: default` without a default pose"))
        return scale, _default_in_action_unit(block, joints)
    return scale, per_element(block.offset or 0.0, n, order, (*path, "offset"), contract.where, problems)


def _default_in_action_unit(block: ActionOutput, joints: PolicyJointsX) -> Numbers:
    if joints.default is None:
        return (0.0,) * len(joints.names)
    pairs = zip(joints.default, joints.unit, strict=True)
    return tuple(value * si_per(unit) / si_per(block.unit) if block.unit else value for value, unit in pairs)


def _from_statistics(
    path: tuple[str | int, ...],
    contract: Contract,
    rows: Sequence[PolicyRow] | None,
    n: int,
    problems: list[Problem],
) -> tuple[Numbers, Numbers]:
    rules = [row.action for row in rows] if rows else []
    scale, offset = [1.0] * n, [0.0] * n
    if rows and any(rule is None for rule in rules):
        expected = "`action: {mean, std}` or `{min, max}` in every joint row, or scale and offset"
        problems.append(problem("statistics-missing", contract.where(*path), expected=expected, got="none"))
    for index, rule in enumerate(rules):
        if isinstance(rule, MinMax):
            scale[index], offset[index] = (rule.max - rule.min) / 2, (rule.max + rule.min) / 2
        elif rule is not None:
            scale[index], offset[index] = rule.std, rule.mean
    return tuple(scale), tuple(offset)
