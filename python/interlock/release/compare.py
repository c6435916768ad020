"""Compares two sets of actions in physical units, dimension by dimension. Pure numbers, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

P99_NEEDS = 662  # samples that support a p99 at 99 % confidence (MLPerf early stopping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may differ: `|d| <= atol + rtol * |reference|`, both terms together.

    Attributes:
        atol: rad, m or fraction.
        rtol: Share of the reference.
    """

    atol: float = 1e-4
    rtol: float = 1e-5

    def allowed(self, reference: F64) -> F64:
        """Largest admissible difference, element by element."""
        return self.atol + self.rtol * np.abs(reference)

    def as_json(self) -> dict[str, Any]:
        """As evidence carries it."""
        return {"form": "|d| <= atol + rtol*|ref|", "atol": self.atol, "rtol": self.rtol, "unit": "SI per dimension"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How far a candidate is from a reference.

    Attributes:
        passes: Whether every element of every dimension is inside the budget.
        worst: Name of the worst dimension.
        worst_error: Its largest difference; infinite where a number is missing.
        dimensions: Per dimension: max, mean, p99, over, not_finite, needed_atol.
        permuted: Dimensions that hold another dimension's numbers, as (here, belongs to).
    """

    passes: bool
    worst: str
    worst_error: float
    dimensions: dict[str, dict[str, Any]]
    permuted: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """As evidence carries it."""
        return {
            "passes": self.passes,
            "worst": self.worst,
            "worst_error": self.worst_error,
            "dimensions": self.dimensions,
            "permuted": [list(each) for each in self.permuted],
        }


def compare(reference: F64, candidate: F64, budget: Budget, names: Sequence[str]) -> Comparison:
    """Compares actions of shape (T, rows, n). What is not a number on either side is a failure, never skipped."""
    if reference.shape != candidate.shape or reference.shape[-1] != len(names) or not reference.size:
        shapes = f"{reference.shape} against {candidate.shape}"
        return Comparison(passes=False, worst=shapes, worst_error=float("inf"), dimensions={}, permuted=())
    allowed = budget.allowed(reference)
    with np.errstate(invalid="ignore"):
        difference = np.abs(candidate - reference)
    dimensions: dict[str, dict[str, Any]] = {}
    worst, worst_ratio, worst_error = names[0], -1.0, 0.0
    for index, name in enumerate(names):
        d, a = difference[..., index].ravel(), allowed[..., index].ravel()
        # An infinite reference would allow everything: what is not a number is counted before anything is compared.
        broken = ~(np.isfinite(d) & np.isfinite(reference[..., index].ravel()))
        sound = d[~broken]
        over = int(np.count_nonzero(~(d <= a) | broken))
        needed = np.maximum(sound - budget.rtol * np.abs(reference[..., index].ravel()[~broken]), 0.0)
        largest = float("inf") if broken.any() else float(sound.max())
        dimensions[name] = {
            "max": largest,
            "mean": float("nan") if not sound.size else float(sound.mean()),
            "p99": float(np.quantile(sound, 0.99)) if sound.size >= P99_NEEDS else None,
            "count": int(d.size),
            "over": over,
            "not_finite": int(np.count_nonzero(broken)),
            "needed_atol": float("inf") if broken.any() else float(needed.max()),
        }
        ratio = _ratio(sound, a[~broken]) if not broken.any() else float("inf")
        if ratio > worst_ratio:
            worst, worst_ratio, worst_error = name, ratio, largest
    passes = all(each["over"] == 0 for each in dimensions.values())
    permuted = () if passes else _permuted(reference, candidate, budget, names)
    return Comparison(passes=passes, worst=worst, worst_error=worst_error, dimensions=dimensions, permuted=permuted)


def _ratio(difference: F64, allowed: F64) -> float:
    """Largest share of the budget that is used; where nothing is allowed, any difference is infinitely too large."""
    some = np.where(difference > 0, np.inf, 0.0)
    return float(np.divide(difference, allowed, out=some, where=allowed > 0).max())


def _permuted(reference: F64, candidate: F64, budget: Budget, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Dimensions whose numbers are those of another one."""
    allowed = budget.allowed(reference)

    def fits(here: int, there: int) -> bool:
        with np.errstate(invalid="ignore"):
            difference = np.abs(candidate[..., here] - reference[..., there])
        return bool((difference <= allowed[..., there]).all())

    wrong = [index for index in range(len(names)) if not fits(index, index)]
    found = []
    for here in wrong:
        owners = [there for there in wrong if there != here and fits(here, there)]
        if len(owners) == 1:
            found.append((names[here], names[owners[0]]))
    return tuple(found)


def effect(reference: F64, other: F64) -> F64:
    """Largest difference per dimension; infinite where a number is missing. Shape (n,)."""
    difference = np.abs(other - reference).reshape(-1, reference.shape[-1])
    largest: F64 = np.where(np.isfinite(difference).all(axis=0), np.nanmax(np.nan_to_num(difference), axis=0), np.inf)
    return largest


def drift(reference: F64, candidate: F64) -> list[float]:
    """Largest difference in each quarter of a rollout: a state that runs away grows from one to the next."""
    difference = np.abs(candidate - reference).reshape(len(reference), -1).max(axis=1)
    return [float(part.max()) if part.size else 0.0 for part in np.array_split(difference, 4)]


def flips(
    reference: F64, candidate: F64, budget: Budget, boundaries: Sequence[Sequence[float]], names: Sequence[str]
) -> dict[str, Any]:
    """Decisions that come out differently: a target on the other side of a limit.

    Args:
        reference: Shape (T, rows, n).
        candidate: The same shape.
        budget: Decides how near counts as near.
        boundaries: Values at which something is decided, per dimension.
        names: Dimensions.
    """
    flipped: dict[str, int] = {}
    near = total = 0
    for index, name in enumerate(names):
        ours, theirs = reference[..., index].ravel(), candidate[..., index].ravel()
        margin = budget.allowed(ours)
        for boundary in boundaries[index]:
            other = int(np.count_nonzero((ours > boundary) != (theirs > boundary)))
            if other:
                flipped[name] = flipped.get(name, 0) + other
            near += int(np.count_nonzero(np.abs(ours - boundary) <= 10 * margin))
            total += ours.size
    return {"flipped": flipped, "share_near_a_boundary": near / total if total else 0.0, "near": "10 x budget"}
