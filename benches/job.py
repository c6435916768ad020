"""What a measuring process is asked to do, and what it answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benches.fixtures.texts import Kind

PRIORITY = 50  # SCHED_FIFO, what `interlock run` asks for unless told otherwise
Contender = Literal["interlock", "plain", "start", "preprocess"]
I64 = NDArray[np.int64]
NO_SAMPLES: I64 = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One measurement in one process. The floor is taken before and after it, in the same process.

    Attributes:
        contender: Module of `benches.contenders`.
        joints: Degrees of freedom; 12 or 29.
        kind: Kind of command.
        rate_hz: Ticks per second.
        seconds: Measured time, without start and floors.
        floor_seconds: Length of each floor; 0 for none.
        priority: SCHED_FIFO priority asked for; 0: the normal scheduler.
        is_busy: Another Python thread of the process spins.
        has_cameras: Three cameras and a policy that answers in chunks.
        threads: Inference threads of the plain loop; 0: ONNX Runtime's own default.
    """

    contender: Contender
    joints: int = 12
    kind: Kind = "position_pd"
    rate_hz: int = 500
    seconds: float = 4.0
    floor_seconds: float = 1.0
    priority: int = 0
    is_busy: bool = False
    has_cameras: bool = False
    threads: int = 1

    @property
    def scheduler(self) -> str:
        """The scheduler asked for."""
        return f"FIFO {self.priority}" if self.priority else "OTHER"

    def scaled(self, factor: float) -> Job:
        """The same for longer or shorter."""
        return replace(self, seconds=self.seconds * factor, floor_seconds=self.floor_seconds * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a measuring process is given beside its job.

    Attributes:
        folder: Graphs and, for `start`, a policy folder with its robot.
        launched_ns: When its launch began, monotonic clock.
    """

    folder: Path
    launched_ns: int


@dataclass(slots=True, kw_only=True)
class Measured:
    """What a process measured. Durations in nanoseconds.

    Attributes:
        job: What was asked.
        series: Samples by name.
        facts: Counters, what the kernel granted, what else is worth knowing.
        floor_before: Lateness of a bare absolute-deadline loop before the contender ran.
        floor_after: The same after it.
    """

    job: Job
    series: dict[str, I64] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    floor_before: I64 = field(default_factory=lambda: NO_SAMPLES)
    floor_after: I64 = field(default_factory=lambda: NO_SAMPLES)

    def of(self, name: str) -> I64:
        """One series; empty when it was not measured."""
        return self.series.get(name, NO_SAMPLES)

    def count(self, name: str) -> int:
        """One counter; 0 when it was not counted."""
        return int(self.facts.get("counters", {}).get(name, 0))

    def write(self, path: Path) -> None:
        """Leaves everything in one file."""
        facts = json.dumps({"job": asdict(self.job), "facts": self.facts})
        arrays: dict[str, Any] = {f"series_{name}": values for name, values in self.series.items()}
        np.savez(path, facts=np.array(facts), before=self.floor_before, after=self.floor_after, **arrays)

    @classmethod
    def read(cls, path: Path) -> Measured:
        """Reads what `write` left."""
        with np.load(path, allow_pickle=False) as held:
            said = json.loads(str(held["facts"]))
            series = {name.removeprefix("series_"): held[name] for name in held.files if name.startswith("series_")}
            return cls(
                job=Job(**said["job"]),
                series=series,
                facts=said["facts"],
                floor_before=held["before"],
                floor_after=held["after"],
            )


def pooled(parts: list[Measured]) -> Measured:
    """Rounds of the same job as one measurement: samples one after another, counters added, facts of the last."""
    first, last = parts[0], parts[-1]
    names = list(dict.fromkeys(name for part in parts for name in part.series))
    counters: dict[str, float] = {}
    for part in parts:
        for name, value in part.facts.get("counters", {}).items():
            counters[name] = counters.get(name, 0) + value
    problems = [each for part in parts for each in part.facts.get("problems", [])]
    crowding = [each for part in parts for each in part.facts.get("crowding", [])]
    loads = [part.facts["load"] for part in parts if "load" in part.facts]
    return Measured(
        job=first.job,
        series={name: np.concatenate([part.of(name) for part in parts]) for name in names},
        facts={
            **last.facts,
            "counters": counters,
            "problems": problems,
            "rounds": len(parts),
            "load": loads,
            "crowding": crowding,
        },
        floor_before=np.concatenate([part.floor_before for part in parts]),
        floor_after=np.concatenate([part.floor_after for part in parts]),
    )
