"""One row of a table: a quantity, what supports it, what it is held against, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benches.floor import Floor, Noise
from interlock.view.percentiles import SUPPORT, Percentile, percentiles

SHOWN = (50.0, 95.0, 99.0, 99.9)
NS_PER = {"us": 1e3, "ms": 1e6, "s": 1e9, "1": 1.0}
Number = Literal["p50", "p99", "value", "ratio"]


class Verdict(str, Enum):
    """What follows from a row."""

    REACHED = "reached"
    MISSED = "missed"
    NOT_EVALUATED = "not evaluated"
    COMPARISON = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A number to reach.

    Attributes:
        number: Which number of the row.
        bound: In the row's unit; a pure number for `ratio`.
        is_lower: The number must be at least `bound`, not at most.
    """

    number: Number
    bound: float
    is_lower: bool = False

    def text(self) -> str:
        """For a table cell."""
        sign = ">=" if self.is_lower else "<="
        return f"{'' if self.number == 'value' else self.number + ' '}{sign} {self.bound:g}"

    def holds(self, value: float) -> bool:
        """Whether it is reached."""
        return value >= self.bound if self.is_lower else value <= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured quantity.

    Attributes:
        quantity: What was measured.
        case: Under which conditions, in few words.
        unit: Unit of every number but `ratio`.
        n: How many samples or ticks it rests on.
        percentiles: Empty for a single number.
        value: A single number; None for percentiles.
        largest: Largest sample.
        ratio: p99 over that of the floor or over what `against` names.
        against: What `ratio` compares with.
        targets: What is to be reached; empty for a comparison.
        verdict: What follows.
        reason: Why, where it is not obvious from the numbers.
        conditions: Everything else that belongs to the numbers.
    """

    quantity: str
    case: str
    unit: str
    n: int
    percentiles: tuple[Percentile, ...] = ()
    value: float | None = None
    largest: float | None = None
    ratio: float | None = None
    against: str = ""
    targets: tuple[Target, ...] = ()
    verdict: Verdict = Verdict.COMPARISON
    reason: str = ""
    conditions: dict[str, Any] = field(default_factory=dict)

    def at(self, percent: float) -> float | None:
        """One percentile; None where it is withheld."""
        return next((each.value for each in self.percentiles if each.percent == percent), None)

    def as_json(self) -> dict[str, Any]:
        """As plain data; a withheld percentile is null beside the samples it would need."""
        return {
            "quantity": self.quantity,
            "case": self.case,
            "unit": self.unit,
            "n": self.n,
            "percentiles": {
                f"p{each.percent:g}": {"value": each.value, "needed": each.needed} for each in self.percentiles
            },
            "value": self.value,
            "largest": self.largest,
            "ratio": self.ratio,
            "against": self.against,
            "targets": [each.text() for each in self.targets],
            "verdict": self.verdict.value or None,
            "reason": self.reason,
            "conditions": self.conditions,
        }


def sampled(
    quantity: str,
    case: str,
    samples_ns: NDArray[Any],
    *,
    unit: str = "us",
    floor: Floor | None = None,
    targets: tuple[Target, ...] = (),
    problems: tuple[str, ...] = (),
    conditions: dict[str, Any] | None = None,
) -> Row:
    """A row of percentiles, set against the floor of the same run.

    Args:
        quantity: What was measured.
        case: Under which conditions.
        samples_ns: Durations in nanoseconds. Shape (n,).
        unit: us, ms or s.
        floor: Floor of the same run.
        targets: What is to be reached.
        problems: Why the numbers must not be judged.
        conditions: What belongs to the numbers.
    """
    values = samples_ns.astype(np.float64) / NS_PER[unit]
    found = tuple(percentiles(values, SHOWN))
    p99 = next(each.value for each in found if each.percent == 99.0)
    under = None if floor is None else floor.at(99.0)
    ratio = None if p99 is None or under is None else p99 * NS_PER[unit] / max(under, 1.0)
    numbers: dict[Number, float | None] = {
        "p50": next(each.value for each in found if each.percent == 50.0),
        "p99": p99,
        "ratio": ratio,
    }
    verdict, reason = judge(targets, numbers, None if floor is None else floor.noise(), problems, n=values.size)
    return Row(
        quantity=quantity,
        case=case,
        unit=unit,
        n=values.size,
        percentiles=found,
        largest=float(values.max()) if values.size else None,
        ratio=ratio,
        against="" if floor is None else "floor p99",
        targets=targets,
        verdict=verdict,
        reason=reason,
        conditions=conditions or {},
    )


def single(
    quantity: str,
    case: str,
    value: float,
    *,
    n: int,
    unit: str,
    ratio: float | None = None,
    against: str = "",
    noise: Noise | None = None,
    targets: tuple[Target, ...] = (),
    problems: tuple[str, ...] = (),
    conditions: dict[str, Any] | None = None,
) -> Row:
    """A row of one number that rests on `n` samples or ticks. `noise`: why a number that misses may tell nothing."""
    verdict, reason = judge(targets, {"value": value, "ratio": ratio}, noise, problems, n=n)
    return Row(
        quantity=quantity,
        case=case,
        unit=unit,
        n=n,
        value=value,
        ratio=ratio,
        against=against,
        targets=targets,
        verdict=verdict,
        reason=reason,
        conditions=conditions or {},
    )


def not_evaluated(quantity: str, case: str, reason: str, *, unit: str, targets: tuple[Target, ...] = ()) -> Row:
    """A row for what could not be measured here."""
    return Row(
        quantity=quantity, case=case, unit=unit, n=0, targets=targets, verdict=Verdict.NOT_EVALUATED, reason=reason
    )


FAILED = "failed: "


def failed(quantity: str, case: str, reason: str, *, unit: str, targets: tuple[Target, ...] = ()) -> Row:
    """A row for what should have been measured and was not: the whole run then ends with an error."""
    return not_evaluated(quantity, case, FAILED + reason, unit=unit, targets=targets)


def judge(
    targets: tuple[Target, ...],
    numbers: dict[Number, float | None],
    noise: Noise | None,
    problems: tuple[str, ...],
    *,
    n: int,
) -> tuple[Verdict, str]:
    """What follows.

    Noise only raises a duration: one below its target stands, and one that is above it by more than the noise is a
    miss. A ratio to a restless floor tells nothing in either direction.
    """
    if not targets:
        return Verdict.COMPARISON, "; ".join(problems)
    if problems:
        return Verdict.NOT_EVALUATED, "; ".join(problems)
    missed, doubts = False, ""
    for target in targets:
        value = numbers.get(target.number)
        if value is None:
            needed = SUPPORT[99.0] if target.number != "p50" else SUPPORT[50.0]
            return Verdict.NOT_EVALUATED, f"{target.number} needs {needed} samples, got {n}"
        holds = target.holds(value)
        is_beyond_noise = noise is None or (target.number != "ratio" and value > target.bound * noise.factor)
        if noise is not None and not is_beyond_noise and (target.number == "ratio" or not holds):
            doubts = noise.words
        missed = missed or (is_beyond_noise and not holds)
    if missed:
        return Verdict.MISSED, ""
    return (Verdict.NOT_EVALUATED, doubts) if doubts else (Verdict.REACHED, "")
