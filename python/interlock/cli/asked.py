"""What the command line asked of `interlock run`, and what of it contradicts itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interlock.errors import Exit, InterlockError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asked for."""

    sim: bool = False
    dry: bool = False
    lockstep: bool = False
    task: str | None = None
    goal: str | None = None
    seconds: float = 10.0
    episodes: int = 1
    seed: int = 0
    output: Path | None = None
    record: Literal["png", "raw", "none"] = "png"
    realtime: str = "auto"
    require_rt: bool = False
    cpu: int | None = None
    worker_memory: int | None = None
    wait: bool = False
    metrics: int | None = None
    probe: str | None = None

    def velocity(self) -> tuple[float, float, float] | None:
        """The goal in numbers. Raises `InterlockError` when it is none."""
        if self.goal is None:
            return None
        try:
            parts = [float(each) for each in self.goal.split(",")]
        except ValueError:
            parts = []
        if len(parts) != 3:
            raise InterlockError(
                code="goal-format",
                where="--goal",
                expected="three numbers: VX,VY,WZ in m/s, m/s, rad/s",
                got=self.goal,
                hint="for example --goal 0.5,0,0",
                exit=Exit.USAGE,
            )
        return parts[0], parts[1], parts[2]

    def check(self) -> None:
        """Raises `InterlockError` for what contradicts itself."""
        live = "--probe" if self.metrics is None else "--metrics"
        for is_wrong, code, where, expected, got, hint in (
            (
                self.lockstep and not self.sim,
                "lockstep-needs-sim", "--lockstep", "--sim as well", "",
                "a real robot does not wait for a manual clock",
            ),
            (
                self.lockstep and (self.metrics is not None or self.probe is not None),
                "lockstep-not-live", live, "a run in real time", "--lockstep",
                "a manual clock has no times to measure; the recording tells everything else",
            ),
            (
                self.require_rt and (self.lockstep or self.realtime == "off"),
                "realtime-contradiction", "--require-rt", "a run in real time that asks for it",
                "--lockstep" if self.lockstep else "--realtime off",
                "leave one of the two out",
            ),
            (
                self.lockstep and self.wait,
                "wait-needs-clock", "--wait", "a run in real time", "--lockstep",
                "a manual clock hears no operator",
            ),
            (
                self.episodes > 1 and not self.sim,
                "episodes-need-sim", "--episodes", "1 without --sim: nothing starts again by itself",
                str(self.episodes),
                "add --sim for a simulated robot; on a real one a person starts each episode",
            ),
        ):  # fmt: skip
            if is_wrong:
                raise InterlockError(code=code, where=where, expected=expected, got=got, hint=hint, exit=Exit.USAGE)
