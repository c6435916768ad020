"""Turns what was measured into a verdict. Pure: no I/O, nothing defaulted to a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.artifact.evidence import Verdict

from .compare import Budget, Comparison
from .leg_runs import Leg

F64 = NDArray[np.float64]

FEWEST_SAMPLES = 8
MOST_ACTED = 0.2  # share of ticks; measured: 0 for walkers and arm, 0.99 for a default pose read in degrees
INPUT_DIFFERENCE = 1e-3  # in the tensor's own numbers; the same preprocessing written twice differs by 1e-6

PARITY = "parity: inspect the operator and the precision where the first difference stands; do not run this engine"
CONTRACT = (
    "contract: compare contract.yaml with what the policy was trained on (order, units, scales, colours, rate); "
    "do not run it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict with its reasons.

    Attributes:
        verdict: PASS, FAIL or INCONCLUSIVE.
        failures: What is wrong.
        doubts: Why a pass could not be trusted.
        response: What to do about a failure.
    """

    verdict: Verdict
    failures: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    response: str = PARITY


@dataclass(slots=True, kw_only=True)
class Findings:
    """What was measured.

    Attributes:
        comparisons: By name, such as `samples: source against served engine`.
        legs: By name.
        expected_outputs: Name and shape of each output that the contract promises.
        samples: How many independent observations.
        steps: Control periods of the rollout.
        wanted_steps: Control periods that were asked for.
        made_up_images: Whether pictures were made up.
        mistakes: Effect of each mistake per dimension.
        jitter: Effect of 1e-6 per dimension.
        inputs: Largest difference of each input tensor between the source's preprocessing and ours.
        ended: Why the simulated robot's rollout ended before its time.
        acted: Share of its ticks in which the guard acted.
    """

    comparisons: dict[str, Comparison] = field(default_factory=dict)
    legs: dict[str, Leg] = field(default_factory=dict)
    expected_outputs: Sequence[tuple[str, tuple[int, ...]]] = ()
    samples: int = 0
    steps: int = 0
    wanted_steps: int = 0
    made_up_images: bool = False
    mistakes: Mapping[str, F64] = field(default_factory=dict)
    jitter: F64 | None = None
    inputs: dict[str, float] = field(default_factory=dict)
    ended: str = ""
    acted: float = 0.0


def judge(found: Findings, budget: Budget) -> Judged:
    """PASS only when nothing is wrong and a wrong policy would have been noticed."""
    contract = _contract_failures(found)
    failures = [*_output_failures(found), *contract, *_number_failures(found)]
    doubts = tuple(_doubts(found, budget))
    response = CONTRACT if contract or found.acted > MOST_ACTED else PARITY
    if failures:
        return Judged(verdict=Verdict.FAIL, failures=tuple(failures), doubts=doubts, response=response)
    return Judged(verdict=Verdict.INCONCLUSIVE if doubts else Verdict.PASS, doubts=doubts, response=response)


def _contract_failures(found: Findings) -> list[str]:
    """What no operator and no precision explains: the policy is shown, or understood, other than in training."""
    failures = [
        f"input {name} differs by {each:.3g} from what the source makes of the same observation: "
        "the difference stands before the graph"
        for name, each in found.inputs.items()
        if not each <= INPUT_DIFFERENCE
    ]
    if found.ended:
        failures.append(f"on its simulated robot: {found.ended}")
    return failures


def _output_failures(found: Findings) -> list[str]:
    """Missing, extra and renamed outputs, and observations without an action."""
    failures = []
    expected = dict(found.expected_outputs)
    for leg_name, leg in found.legs.items():
        given = {name: shape for name, _, shape in leg.outputs}
        if given:
            failures += [f"{leg_name}: output {name} is missing" for name in sorted(set(expected) - set(given))]
            failures += [
                f"{leg_name}: output {name} is not in the contract" for name in sorted(set(given) - set(expected))
            ]
            failures += [
                f"{leg_name}: output {name} has shape {list(given[name])}, the contract says {list(expected[name])}"
                for name in sorted(set(given) & set(expected))
                if given[name] != expected[name]
            ]
        if leg.troubles:
            failures.append(f"{leg_name}: no action for {leg.troubles} observations; {leg.first_trouble}")
    return failures


def _number_failures(found: Findings) -> list[str]:
    failures = []
    for name, each in found.comparisons.items():
        if not each.passes:
            failures.append(f"{name}: {each.worst} differs by {each.worst_error:.3g}")
        failures += [f"{name}: {here} holds the numbers of {owner}" for here, owner in each.permuted]
    if not found.comparisons:
        failures.append("nothing was compared")
    return failures


def _doubts(found: Findings, budget: Budget) -> list[str]:
    doubts = []
    if found.samples < FEWEST_SAMPLES:
        doubts.append(f"{found.samples} samples, {FEWEST_SAMPLES} needed")
    if found.acted > MOST_ACTED:
        doubts.append(f"on its simulated robot the guard acted in {found.acted:.0%} of the ticks")
    if found.steps < found.wanted_steps and not found.ended:
        doubts.append(f"a rollout of {found.steps} control periods, {found.wanted_steps} wanted")
    if found.made_up_images:
        doubts.append("pictures were made up: random pixels prove nothing about a policy that sees")
    doubts += [
        f"the mistake {name} moves no action by more than the budget: it would not have been noticed"
        for name, each in found.mistakes.items()
        if not bool((each > budget.atol).any())
    ]
    if not found.mistakes:
        doubts.append("no mistake was tried: nothing shows that a wrong contract would have been noticed")
    if found.jitter is None:
        doubts.append("the effect of 1e-6 jitter is unknown")
    elif not bool((found.jitter < budget.atol).all()):
        doubts.append(
            f"a change of 1e-6 of the inputs moves an action by {float(np.max(found.jitter)):.3g}, beyond the budget"
        )
    return doubts


def mistakes_as_json(found: Findings, budget: Budget, names: Sequence[str]) -> dict[str, Any]:
    """Effect of each mistake where it is largest, and whether it would have been noticed."""
    shown = {}
    for name, each in found.mistakes.items():
        index = int(np.argmax(np.nan_to_num(each, posinf=np.finfo(float).max)))
        shown[name] = {
            "effect": float(each[index]),
            "dimension": names[index],
            "noticed": bool((each > budget.atol).any()),
        }
    return shown
