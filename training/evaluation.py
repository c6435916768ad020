"""Counts successes over unseen episodes, right and wrong contracts, and how hard the targets move."""

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import torch
from numpy.typing import NDArray

from interlock.adapters.arm.plant import COLOURS, PERIOD_NS, TASKS, ArmPlant

from .rollout import Episode, Manner, Policy, play, task_of

UNSEEN = range(1_000_000, 1_000_200)  # seeds far from those of training
WRONG = UNSEEN[:60]  # for each wrong contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Successes out of n, with a 95 % Wilson interval.

    Attributes:
        successes: How many.
        episodes: Out of how many.
    """

    successes: int
    episodes: int

    @property
    def rate(self) -> float:
        """Between 0 and 1."""
        return self.successes / self.episodes

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson score interval, 95 %."""
        z, n = 1.959964, self.episodes
        centre = (self.rate + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(self.rate * (1 - self.rate) / n + z * z / (4 * n * n))
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.successes} of {self.episodes} ({self.rate:.1%}, 95 % {low:.1%} to {high:.1%})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """Largest and 99.9th percentile of the targets' derivatives at the servo rate, each of shape (4,).

    Attributes:
        name: Of the derivative.
        unit: Of both numbers.
        high: 99.9th percentile of the absolute value.
        largest: Maximum of the absolute value.
    """

    name: str
    unit: str
    high: NDArray[np.float64]
    largest: NDArray[np.float64]


def evaluate(seeds: Sequence[int], manner: Manner, workers: int) -> list[Episode]:
    """Plays one episode for each seed; the colours take turns."""
    jobs = [(seed, manner) for seed in seeds]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_play, jobs, chunksize=5))


def share(episodes: Sequence[Episode], seeds: Sequence[int], task: str | None = None) -> Share:
    """Counts successes, of one task or of all."""
    chosen = [e.success for e, seed in zip(episodes, seeds, strict=True) if task in (None, task_of(seed))]
    return Share(successes=sum(chosen), episodes=len(chosen))


def share_of_colours(episodes: Sequence[Episode], seeds: Sequence[int]) -> dict[str, Share]:
    """Counts successes for each colour."""
    return {colour: share(episodes, seeds, task) for colour, task in zip(COLOURS, TASKS, strict=True)}


def motion(targets_rad: Sequence[NDArray[np.float64]]) -> list[Motion]:
    """Differentiates targets at the servo rate: velocity, acceleration, jerk.

    Args:
        targets_rad: Uninterrupted stretches, each of shape (ticks, 4).
    """
    period_s = PERIOD_NS * 1e-9
    found = []
    for order, (name, unit) in enumerate((("velocity", "rad/s"), ("acceleration", "rad/s2"), ("jerk", "rad/s3")), 1):
        parts = [np.diff(stretch, order, axis=0) / period_s**order for stretch in targets_rad]
        values = np.abs(np.concatenate(parts))
        found.append(Motion(name=name, unit=unit, high=np.quantile(values, 0.999, axis=0), largest=values.max(axis=0)))
    return found


_here: list[tuple[ArmPlant, Policy]] = []


def _play(job: tuple[int, Manner]) -> Episode:
    if not _here:
        torch.set_num_threads(1)
        _here.append((ArmPlant(), Policy()))
    seed, manner = job
    return play(*_here[0], seed, task_of(seed), manner)
