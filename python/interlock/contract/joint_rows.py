"""What contract and robot have in common: an order of joints, rows of patterns, and the units of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from interlock.contract.codes import problem
from interlock.contract.parts import Part
from interlock.contract.rows import expand_rows
from interlock.contract.units import JOINT_POSITION_UNITS, UNITS, are_convertible, per_time, si_per
from interlock.errors import Problem

R = TypeVar("R", bound=Part)
Where = Callable[..., str]

_POSITION = {"pos", "default"}
_DERIVED = {"vel": 1, "acc": 2, "jerk": 3}
_OWN = {
    "torque": ("torque", "force"),
    "kp": ("angular stiffness", "stiffness"),
    "kd": ("angular damping", "damping"),
    "kp_max": ("angular stiffness", "stiffness"),
    "kd_max": ("angular damping", "damping"),
}
QUANTITIES = _POSITION | set(_DERIVED) | set(_OWN)


@dataclass(frozen=True, slots=True)
class JointUnits:
    """Units of the rows.

    Attributes:
        position: Position unit per joint, in file order; `rad` where it is not known.
        factor: Quantity to the number by which a row's value is multiplied to be in the position unit per time, or SI.
    """

    position: tuple[str, ...]
    factor: Mapping[str, float]


def check_order(order: Sequence[str], where: Where, problems: list[Problem]) -> None:
    """Refuses joints that stand twice and names that mean something else."""
    for index, joint in enumerate(order):
        if joint in order[:index]:
            problems.append(problem("joint-twice", where("joints", "order", index), got=joint))
        if joint in QUANTITIES or joint in ("others", "none", "ask"):
            problems.append(problem("joint-name", where("joints", "order", index), got=joint))


def joint_rows(
    each: Mapping[str, R], order: Sequence[str], where: Where, problems: list[Problem]
) -> tuple[R, ...] | None:
    """One row per joint, in file order; None where a joint has none or the rows differ in their fields."""
    before = len(problems)
    rows = expand_rows(each, order, lambda pattern: where("joints", "each", *([pattern] if pattern else [])), problems)
    if len(problems) > before:
        return None
    usual = _fields(next(iter(each.values())))
    for pattern, row in each.items():
        if _fields(row) != usual:
            joints = [joint for joint in order if rows[joint] is row]
            expected = ", ".join(sorted(usual)) or "no fields"
            got = f"{', '.join(sorted(_fields(row))) or 'no fields'} for {joints[0] if joints else pattern}"
            problems.append(problem("rows-differ", where("joints", "each", pattern), expected=expected, got=got))
    return tuple(rows[joint] for joint in order) if len(problems) == before else None


def joint_units(
    unit: str | Mapping[str, str], order: Sequence[str], used: set[str], where: Where, problems: list[Problem]
) -> JointUnits:
    """Reads `joints.unit`: one unit for all, a unit per quantity, a unit per pattern, or the last two together.

    Args:
        unit: As written.
        order: The joints.
        used: Quantities that the rows hold; each needs a unit.
        where: Places in the document.
        problems: Filled with what is wrong.
    """
    given = {} if isinstance(unit, str) else dict(unit)
    quantities = {key: value for key, value in given.items() if key in QUANTITIES}
    patterns = {key: value for key, value in given.items() if key not in QUANTITIES}
    named = [quantities[key] for key in sorted(_POSITION) if key in quantities]
    if patterns and named:
        got = f"a position unit for {', '.join(patterns)} and one for all"
        problems.append(problem("unit-twice", where("joints", "unit"), got=got))
    if isinstance(unit, str):
        position = dict.fromkeys(order, unit)
    elif patterns:
        position = expand_rows(patterns, order, lambda p: where("joints", "unit", *([p] if p else [])), problems)
    elif named:
        position = dict.fromkeys(order, named[0])
    else:
        position = {}
        problems.append(problem("unit-missing", where("joints", "unit"), expected="the unit of joint positions"))
    for joint, word in position.items():
        if word not in JOINT_POSITION_UNITS:
            expected = ", ".join(JOINT_POSITION_UNITS)
            got = f"{word} ({joint})"
            problems.append(problem("unit-unknown", where("joints", "unit"), expected=expected, got=got))
            position[joint] = "rad"
    factor = _factors(quantities, position, used, where, problems)
    return JointUnits(tuple(position.get(joint, "rad") for joint in order), factor)


def _factors(
    quantities: Mapping[str, str],
    position: Mapping[str, str],
    used: set[str],
    where: Where,
    problems: list[Problem],
) -> dict[str, float]:
    factor = dict.fromkeys(QUANTITIES, 1.0)
    for quantity, word in quantities.items():
        place = where("joints", "unit", quantity)
        if quantity in _DERIVED:
            wanted = {per_time(each, _DERIVED[quantity]) for each in position.values()}
            if any(not are_convertible(word, each) for each in wanted):
                problems.append(problem("unit-mismatch", place, expected=" or ".join(sorted(wanted)), got=word))
            elif len(wanted) == 1:
                factor[quantity] = si_per(word) / si_per(next(iter(wanted)))
        elif quantity in _OWN and UNITS[word].quantity not in _OWN[quantity]:
            problems.append(problem("unit-mismatch", place, expected=" or ".join(_OWN[quantity]), got=word))
    problems.extend(
        problem("unit-missing", where("joints", "unit"), expected=f"a unit for {quantity}", got="none")
        for quantity in sorted(used & set(_OWN) - set(quantities))
    )
    return factor


def column(rows: Sequence[Part] | None, field: str, factor: float = 1.0) -> tuple[float, ...] | None:
    """One number per joint; None where the rows do not hold it."""
    if rows is None or any(getattr(row, field) is None for row in rows):
        return None
    return tuple(float(getattr(row, field)) * factor for row in rows)


def _fields(row: Any) -> set[str]:
    return {name for name in row.model_fields_set if getattr(row, name) is not None}
