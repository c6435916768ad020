"""Observation terms written out per element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interlock.contract.codes import problem
from interlock.contract.expanded import Numbers, TermsX, TermX
from interlock.contract.joint_rows import Where
from interlock.contract.observation_model import (
    BaseTerm,
    GoalTerm,
    JointInput,
    JointTerm,
    LastActionTerm,
    PhaseTerm,
    Term,
    TermsInput,
)
from interlock.contract.policy_model import Goals, MeanStd, MinMax
from interlock.contract.rows import expand_rows
from interlock.contract.units import UNITS, per_time
from interlock.errors import Problem

_BASE_UNITS = {
    "base_lin_vel": ("velocity",),
    "base_ang_vel": ("angular velocity",),
    "projected_gravity": ("number",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TermContext:
    """What terms need from the rest of the contract."""

    order: tuple[str, ...]
    unit: tuple[str, ...]
    statistics: tuple[MeanStd | MinMax | None, ...]
    eps: float | None
    goals: Goals
    chunk: int
    where: Where
    problems: list[Problem]


def expand_terms_input(name: str, block: TermsInput, context: TermContext) -> TermsX:
    """A concatenation of terms."""
    terms = tuple(
        _expand_term(term, ("inputs", name, "terms", index), context) for index, term in enumerate(block.terms)
    )
    history = None if block.history == "none" else block.history
    steps = 1 if history is None else history.steps
    width = sum(term.dim for term in terms) * steps
    return TermsX(
        name=name,
        shape=_checked_shape(name, block.shape, width, context),
        dtype=block.dtype,
        terms=terms,
        steps=steps,
        per_term=history is None or history.layout == "per_term",
        oldest_first=history is None or history.order == "oldest_first",
        repeat_first=history is None or history.at_reset == "repeat_first",
        clip=None if block.clip == "none" else block.clip,
    )


def expand_joint_input(name: str, block: JointInput, context: TermContext) -> TermsX:
    """A tensor of one joint quantity, normalised by the rows."""
    n = len(context.order)
    power = 1 if block.of == "joint_vel" else 0
    offset, scale = _normalisation(name, context)
    term = TermX(term=block.of, unit=tuple(per_time(unit, power) for unit in context.unit), offset=offset, scale=scale)
    return TermsX(
        name=name,
        shape=_checked_shape(name, block.shape, n, context),
        dtype=block.dtype,
        terms=(term,),
        steps=1,
        per_term=True,
        oldest_first=True,
        repeat_first=True,
        clip=None,
    )


def _normalisation(name: str, context: TermContext) -> tuple[Numbers, Numbers]:
    place = context.where("inputs", name)
    offset, scale = [0.0] * len(context.order), [1.0] * len(context.order)
    for index, (joint, rule) in enumerate(zip(context.order, context.statistics, strict=True)):
        if rule is None:
            expected = "`state: {mean, std}` or `{min, max}` in every joint row"
            context.problems.append(problem("statistics-missing", place, expected=expected, got=f"none for {joint}"))
            break
        if isinstance(rule, MinMax):
            if rule.max <= rule.min:
                got = f"[{rule.min}, {rule.max}] for {joint}"
                context.problems.append(problem("range-inverted", place, expected="min < max", got=got))
                continue
            offset[index], scale[index] = -(rule.min + rule.max) / 2, 2 / (rule.max - rule.min)
        elif context.eps is None:
            context.problems.append(problem("epsilon-missing", context.where("joints"), got="mean and std without eps"))
            break
        elif rule.std + context.eps <= 0:
            context.problems.append(problem("not-positive", place, expected="std + eps > 0", got=f"0 for {joint}"))
        else:
            offset[index], scale[index] = -rule.mean, 1 / (rule.std + context.eps)
    return tuple(offset), tuple(scale)


def _expand_term(term: Term, path: tuple[str | int, ...], context: TermContext) -> TermX:
    units = _units_of(term, path, context)
    rows = context.order if isinstance(term, (JointTerm, LastActionTerm)) else None
    values = {
        key: per_element(getattr(term, key), len(units), rows, (*path, key), context.where, context.problems)
        for key in ("offset", "scale")
    }
    phase = term if isinstance(term, PhaseTerm) else None
    still = None if phase is None or phase.still == "none" else (phase.still.below, phase.still.at_rad)
    of = term.of if isinstance(term, (LastActionTerm, PhaseTerm)) else ""
    if of in ("raw", "clipped") and context.chunk > 1:
        expected = "`of: applied`: which action of a chunk came last is known only after the guard"
        context.problems.append(problem("timing-contradiction", context.where(*path), expected=expected, got=of))
    return TermX(
        term=term.term,
        of=of,
        parts=term.parts if isinstance(term, GoalTerm) else (),
        unit=units,
        clip=None if term.clip == "none" else term.clip,
        offset=values["offset"],
        scale=values["scale"],
        freq_hz=_frequency(phase) if phase is not None else 0.0,
        init_rad=phase.init_rad if phase is not None else (),
        still=still,
    )


def _units_of(term: Term, path: tuple[str | int, ...], context: TermContext) -> tuple[str, ...]:
    if isinstance(term, BaseTerm):
        _check_unit(term.unit, _BASE_UNITS[term.term], path, context)
        return (term.unit,) * 3
    if isinstance(term, JointTerm):
        power = 1 if term.term == "joint_vel" else 0
        allowed = tuple(UNITS[per_time(unit, power)].quantity for unit in dict.fromkeys(context.unit))
        _check_unit(term.unit, allowed, path, context)
        return (term.unit,) * len(context.order)
    if isinstance(term, LastActionTerm):
        return ("1",) * len(context.order)
    if isinstance(term, PhaseTerm):
        return ("1",) * len(term.init_rad)
    velocity = context.goals.velocity
    if velocity is None:
        got = "no `goals.velocity`, which this term reads"
        context.problems.append(problem("goal-missing", context.where(*path), got=got))
        return ("1",) * len(term.parts)
    return tuple(getattr(velocity, part).unit for part in term.parts)


def _check_unit(unit: str, allowed: tuple[str, ...], path: tuple[str | int, ...], context: TermContext) -> None:
    if any(UNITS[unit].quantity != each for each in allowed):
        expected = "a unit of " + " and ".join(dict.fromkeys(allowed))
        context.problems.append(problem("unit-mismatch", context.where(*path, "unit"), expected=expected, got=unit))


def _frequency(phase: PhaseTerm) -> float:
    return phase.freq_hz if phase.freq_hz is not None else 1 / (phase.period_s or 1.0)


def per_element(
    value: float | tuple[float, ...] | Mapping[str, float],
    dim: int,
    joints: Sequence[str] | None,
    path: tuple[str | int, ...],
    where: Where,
    problems: list[Problem],
) -> Numbers:
    """One number for all, one each, or rows of joint patterns, as one number per element."""
    if isinstance(value, tuple):
        if len(value) != dim:
            expected = f"1 or {dim} numbers"
            problems.append(problem("length-mismatch", where(*path), expected=expected, got=str(len(value))))
            return (0.0,) * dim
        return tuple(float(each) for each in value)
    if isinstance(value, Mapping):
        if joints is None:
            problems.append(problem("wrong-type", where(*path), expected="a number or a list", got="a mapping"))
            return (0.0,) * dim
        rows = expand_rows(value, joints, lambda pattern: where(*path, *([pattern] if pattern else [])), problems)
        return tuple(float(rows.get(joint, 0.0)) for joint in joints)
    return (float(value),) * dim


def _checked_shape(name: str, shape: tuple[int, ...] | None, width: int, context: TermContext) -> tuple[int, ...]:
    made = (1, width)
    if shape is not None and shape != made:
        place = context.where("inputs", name, "shape")
        context.problems.append(problem("shape-mismatch", place, expected=str(list(made)), got=str(list(shape))))
    return made
