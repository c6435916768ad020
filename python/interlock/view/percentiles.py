"""Percentiles that are printed only where the samples support them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Fewest samples n per percentile p for which the chance of at most one of them beyond it is 1 % or less:
# p^n + n (1 - p) p^(n - 1) <= 0.01 (early stopping at 99 % confidence, MLPerf inference rules).
SUPPORT = {50.0: 11, 90.0: 64, 95.0: 130, 99.0: 662, 99.9: 6636}


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile of a sample.

    Attributes:
        percent: Which.
        value: In the unit of the samples; None where the sample is too small to say.
        needed: Samples that would be needed.
    """

    percent: float
    value: float | None
    needed: int

    def text(self, digits: int = 1) -> str:
        """For a table cell."""
        return f"needs {self.needed}" if self.value is None else f"{self.value:,.{digits}f}"


def percentiles(samples: NDArray[np.float64], wanted: tuple[float, ...] = (50.0, 95.0, 99.0, 99.9)) -> list[Percentile]:
    """Percentiles of finite samples. Shape (n,); NaN are left out."""
    finite = samples[np.isfinite(samples)]
    found = []
    for percent in wanted:
        needed = SUPPORT[percent]
        value = float(np.percentile(finite, percent)) if finite.size >= needed else None
        found.append(Percentile(percent, value, needed))
    return found
