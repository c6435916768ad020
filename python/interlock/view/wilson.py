"""How sure a success rate is."""

from __future__ import annotations

from math import sqrt

Z_95 = 1.959964  # two-sided 95 %


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Wilson score interval of a proportion at 95 %; (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    rate = successes / trials
    denominator = 1 + Z_95**2 / trials
    centre = (rate + Z_95**2 / (2 * trials)) / denominator
    half = Z_95 * sqrt(rate * (1 - rate) / trials + Z_95**2 / (4 * trials**2)) / denominator
    return max(0.0, centre - half), min(1.0, centre + half)
