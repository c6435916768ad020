"""A contract written out, and held against itself."""

from __future__ import annotations

from typing import Any

from interlock.contract.codes import problem
from interlock.contract.conventions import EPSILON
from interlock.contract.expand_actions import expand_outputs
from interlock.contract.expand_images import expand_image
from interlock.contract.expand_terms import TermContext, expand_joint_input, expand_terms_input
from interlock.contract.expanded import (
    ContractX,
    GoalsX,
    InputX,
    NoiseX,
    PolicyJointsX,
    StateX,
    TermsX,
    TimingX,
    TokensX,
)
from interlock.contract.joint_rows import check_order, column, joint_rows, joint_units
from interlock.contract.observation_model import ImageInput, JointInput, TermsInput
from interlock.contract.parts import as_data
from interlock.contract.policy_model import CONTRACT_SCHEMA, Contract, MeanStd, PolicyRow
from interlock.contract.units import are_convertible
from interlock.errors import InterlockError, Problem

GOAL_UNITS = {"lin_vel_x": "m/s", "lin_vel_y": "m/s", "ang_vel_z": "rad/s"}


def expand_contract(contract: Contract) -> ContractX:
    """Writes a contract out.

    Raises:
        InterlockError: Everything in which the contract contradicts itself.
    """
    problems: list[Problem] = []
    expanded = _expand(contract, problems)
    if problems:
        raise InterlockError(problems=problems)
    return expanded


def _expand(contract: Contract, problems: list[Problem]) -> ContractX:
    conventions: list[str] = []
    joints, rows = _joints(contract, problems)
    timing = _timing(contract, problems)
    eps = contract.joints.eps
    if eps is None and contract.source.reader in EPSILON:
        eps = EPSILON[contract.source.reader]
        conventions.append(f"eps {eps:g} added to every std ({contract.source.reader})")
    context = TermContext(
        order=contract.joints.order,
        unit=joints.unit,
        # Rows that are refused are refused once: what they would have said is not missed again.
        statistics=tuple(row.state for row in rows) if rows else (MeanStd(mean=0.0, std=1.0),) * len(joints.names),
        eps=eps,
        goals=contract.goals,
        chunk=timing.chunk,
        where=contract.where,
        problems=problems,
    )
    inputs = _inputs(contract, context)
    outputs = expand_outputs(contract, joints, rows, timing, problems)
    _check_state(contract, inputs, problems)
    _check_language(contract, inputs, problems)
    goals = _goals(contract, inputs, problems)
    if rows is not None:
        _check_defaults(contract, joints, inputs, problems)
    return ContractX(
        schema=CONTRACT_SCHEMA,
        name=contract.name,
        trained_for=contract.trained_for,
        source=as_data(contract.source),
        timing=timing,
        joints=joints,
        inputs=inputs,
        outputs=outputs,
        language=None if contract.language == "none" else as_data(contract.language),
        goals=goals,
        choices=as_data(contract.choices),
        conventions=tuple(conventions),
    )


def _joints(contract: Contract, problems: list[Problem]) -> tuple[PolicyJointsX, tuple[PolicyRow, ...] | None]:
    block = contract.joints
    check_order(block.order, contract.where, problems)
    rows = joint_rows(block.each, block.order, contract.where, problems)
    used = {name for row in block.each.values() for name in row.model_fields_set}
    units = joint_units(block.unit, block.order, used, contract.where, problems)
    states = [row.state for row in rows] if rows else []
    means = tuple(state.mean for state in states if isinstance(state, MeanStd))
    joints = PolicyJointsX(
        names=tuple(joint + block.name_suffix for joint in block.order),
        unit=units.position,
        calibration=block.zero.calibration if block.zero else "",
        default=column(rows, "default"),
        kp=column(rows, "kp", units.factor["kp"]),
        kd=column(rows, "kd", units.factor["kd"]),
        mean_state=means if means and len(means) == len(block.order) else None,
    )
    if (joints.kp is None) != (joints.kd is None):
        problems.append(problem("gains-missing", contract.where("joints", "each"), got="one of kp and kd"))
    return joints, rows


def _timing(contract: Contract, problems: list[Problem]) -> TimingX:
    timing = contract.timing
    place = contract.where("timing")
    if timing.chunk > 1:
        problems.extend(
            problem("missing-key", place, expected=f"`{key}`, because chunk > 1", got="nothing")
            for key in ("execute", "handover")
            if getattr(timing, key) is None
        )
    execute = timing.execute or timing.chunk
    if execute > timing.chunk:
        got = f"execute {execute} of a chunk of {timing.chunk}"
        problems.append(problem("timing-contradiction", place, expected="execute <= chunk", got=got))
    return TimingX(
        period_s=timing.period_s,
        chunk=timing.chunk,
        execute=execute,
        handover=timing.handover or "replace",
        action_delay_ms=timing.action_delay_ms,
    )


def _inputs(contract: Contract, context: TermContext) -> tuple[InputX, ...]:
    made: list[InputX] = []
    for name, block in contract.inputs.items():
        if isinstance(block, TermsInput):
            made.append(expand_terms_input(name, block, context))
        elif isinstance(block, JointInput):
            made.append(expand_joint_input(name, block, context))
        elif isinstance(block, ImageInput):
            made.append(expand_image(name, block, contract, context.problems))
        else:
            length = 1 if contract.language == "none" else contract.language.length
            shape = (1, length)
            if block.shape not in (None, shape):
                place = contract.where("inputs", name, "shape")
                got = str(list(block.shape or ()))
                context.problems.append(problem("shape-mismatch", place, expected=str(list(shape)), got=got))
            made.append(TokensX(name=name, shape=shape, dtype=block.dtype, mask=block.of == "token_mask"))
    for name, state in ({} if contract.state == "none" else contract.state).items():
        made.append(
            StateX(
                name=name,
                shape=state.shape,
                dtype=state.dtype,
                next=state.next,
                on_dropped_chunk=state.on_dropped_chunk,
            )
        )
    for name, noise in ({} if contract.noise == "none" else contract.noise).items():
        made.append(NoiseX(name=name, shape=noise.shape, dtype=noise.dtype, seed=noise.seed))
    names = [each.name for each in made]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        context.problems.append(problem("yaml-duplicate-key", contract.where("inputs"), got=f"input `{name}` twice"))
    return tuple(made)


def _check_state(contract: Contract, inputs: tuple[InputX, ...], problems: list[Problem]) -> None:
    carried = {each.next for each in inputs if isinstance(each, StateX)}
    offered = {name: output for name, output in contract.outputs.items() if output.role == "state"}
    for each in inputs:
        if not isinstance(each, StateX):
            continue
        output = offered.get(each.next)
        if output is None or output.shape != each.shape:
            expected = f"an output `{each.next}` with role state and shape {list(each.shape)}"
            place = contract.where("state", each.name)
            problems.append(problem("state-incomplete", place, expected=expected, got=_shape_or_none(output)))
    for name in offered:
        if name not in carried:
            place = contract.where("outputs", name)
            problems.append(
                problem("state-incomplete", place, expected="an input under `state` that it feeds", got="none")
            )


def _shape_or_none(output: Any) -> str:
    return "none" if output is None else f"shape {list(output.shape)}"


def _check_language(contract: Contract, inputs: tuple[InputX, ...], problems: list[Problem]) -> None:
    reads = any(isinstance(each, TokensX) and not each.mask for each in inputs)
    masks = any(isinstance(each, TokensX) and each.mask for each in inputs)
    if contract.language == "none":
        if reads or masks:
            problems.append(
                problem("language-missing", contract.where("language"), got="none, but an input reads tokens")
            )
        return
    if not reads:
        problems.append(problem("language-unused", contract.where("language"), got="no input with `of: tokens`"))
    if "{task}" not in contract.language.template:
        place = contract.where("language", "template")
        problems.append(problem("wrong-value", place, expected="text with {task}", got=contract.language.template))
    if contract.goals.text is None:
        got = "no `goals.text`, which the language input needs"
        problems.append(problem("goal-missing", contract.where("goals"), got=got))


def _goals(contract: Contract, inputs: tuple[InputX, ...], problems: list[Problem]) -> GoalsX:
    block = contract.goals
    velocity = None
    if block.velocity is not None:
        parts = []
        for part, si in GOAL_UNITS.items():
            goal = getattr(block.velocity, part)
            if not are_convertible(goal.unit, si):
                place = contract.where("goals", "velocity", part)
                problems.append(problem("unit-mismatch", place, expected=si, got=goal.unit))
            parts.append((goal.unit, goal.range, goal.slew_per_s))
        velocity = tuple(parts)
        terms = [term for each in inputs if isinstance(each, TermsX) for term in each.terms]
        if not any(term.term == "goal" for term in terms):
            problems.append(problem("goal-unused", contract.where("goals", "velocity"), got="no term reads it"))
    if block.text is not None and not any(isinstance(each, TokensX) for each in inputs):
        problems.append(problem("goal-unused", contract.where("goals", "text"), got="no input reads tokens"))
    tasks = None if block.text is None else () if block.text.tasks == "any" else tuple(block.text.tasks)
    return GoalsX(velocity=velocity, tasks=tasks)


def _check_defaults(
    contract: Contract, joints: PolicyJointsX, inputs: tuple[InputX, ...], problems: list[Problem]
) -> None:
    if joints.default is not None:
        return
    terms = [term.term for each in inputs if isinstance(each, TermsX) for term in each.terms]
    if "joint_pos_rel" in terms:
        got = "joint_pos_rel without a default pose"
        problems.append(problem("default-missing", contract.where("joints", "each"), got=got))
