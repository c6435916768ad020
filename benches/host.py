"""What the machine was doing while something was measured."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Load:
    """Load of the machine at one moment.

    Attributes:
        average_1_min: Load average.
        stolen_s: Processor time that the hypervisor took since boot, all cores.
        waited_s: Time in which some task waited for a processor since boot; None where the kernel does not say.
    """

    average_1_min: float
    stolen_s: float
    waited_s: float | None

    @classmethod
    def now(cls) -> Load:
        """Reads it."""
        fields = Path("/proc/stat").read_text().splitlines()[0].split()
        return cls(os.getloadavg()[0], int(fields[8]) / TICKS_PER_S, _pressure_s())

    def until(self, later: Load) -> dict[str, Any]:
        """What happened in between, for a row's conditions."""
        waited = None
        if self.waited_s is not None and later.waited_s is not None:
            waited = round(later.waited_s - self.waited_s, 3)
        return {
            "load_average_before": round(self.average_1_min, 2),
            "load_average_after": round(later.average_1_min, 2),
            "stolen_s": round(later.stolen_s - self.stolen_s, 3),
            "waited_for_processor_s": waited,
        }

    def crowding(self, later: Load, seconds: float) -> float | None:
        """Share of the time in which some task waited for a processor; None where the kernel does not say."""
        if self.waited_s is None or later.waited_s is None:
            return None
        return min((later.waited_s - self.waited_s) / seconds, 1.0)


def _pressure_s() -> float | None:
    try:
        line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return None
    return int(line.rpartition("total=")[2]) / 1e6
