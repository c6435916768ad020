"""The floor: what the operating system alone costs, and whether it held still for long enough to compare with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benches.job import I64, NO_SAMPLES, Measured
from interlock.view.percentiles import SUPPORT

RESTLESS = 1.2  # a floor that differs from itself by more than the tightest target tells nothing about that target
CROWDED = 0.25  # while nothing of ours but the bare loop and, at most, one busy thread wants one of the processors
COMPARED = (99.0, 95.0, 90.0, 50.0)


@dataclass(frozen=True, slots=True)
class Noise:
    """Why little can be told.

    Attributes:
        words: For people.
        factor: A duration that misses its target by more than this is a miss all the same.
    """

    words: str
    factor: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Lateness of bare loops around one or several measurements, in nanoseconds.

    Attributes:
        before: Before each.
        after: After each.
        period_ns: Of the loops.
        crowding: Share of the time in which some program waited for a processor; None where the kernel does not say,
            and for what runs under SCHED_FIFO alone, which waits for nobody.
    """

    before: I64
    after: I64
    period_ns: int
    crowding: float | None

    @classmethod
    def around(cls, measured: Iterable[Measured], *, shares_processors: bool = False) -> Floor:
        """The floors of measurements that were taken side by side under the same conditions.

        Args:
            measured: The measurements.
            shares_processors: What is judged waits for processes under the normal scheduler, whatever its own.
        """
        parts = list(measured)
        is_crowdable = shares_processors or not parts[0].job.priority
        shares = [share for part in parts for share in part.facts.get("crowding", [])]
        return cls(
            before=np.concatenate([NO_SAMPLES, *(part.floor_before for part in parts)]),
            after=np.concatenate([NO_SAMPLES, *(part.floor_after for part in parts)]),
            period_ns=1_000_000_000 // parts[0].job.rate_hz,
            crowding=float(np.mean(shares)) if shares and is_crowdable else None,
        )

    @property
    def samples(self) -> I64:
        """All of it."""
        return np.concatenate([self.before, self.after])

    def at(self, percent: float) -> float | None:
        """One percentile of all of it, in nanoseconds; None where the samples do not support it."""
        samples = self.samples
        return float(np.percentile(samples, percent)) if samples.size >= SUPPORT[percent] else None

    def unrest(self) -> tuple[float, float] | None:
        """(percent, larger over smaller of before and after) at the highest percentile that both support."""
        smaller = min(self.before.size, self.after.size)
        for percent in COMPARED:
            if smaller >= SUPPORT[percent]:
                low, high = sorted(float(np.percentile(part, percent)) for part in (self.before, self.after))
                return percent, high / max(low, 1.0)
        return None

    def noise(self) -> Noise | None:
        """Why little can be told beside this floor; None when it held still."""
        unrest = self.unrest()
        if unrest is None:
            return Noise("noisy: floor too short to tell")
        percent, ratio = unrest
        if ratio > RESTLESS:
            return Noise(f"noisy: floor p{percent:g} differs from itself by {ratio:.1f}x", ratio)
        highest = float(np.percentile(self.samples, percent))
        if highest > self.period_ns / 2:
            return Noise(f"noisy: a bare loop is {highest / 1e6:.1f} ms late at p{percent:g}")
        if self.crowding is not None and self.crowding > CROWDED:
            return Noise(f"noisy: programs waited for a processor {self.crowding:.0%} of the floor's time")
        return None
