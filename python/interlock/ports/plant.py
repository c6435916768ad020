"""A simulated robot that advances one servo period at a time and knows nothing of clocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .driver import Command, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an episode stands.

    Attributes:
        success: Whether the task is reached; None where the plant has no task.
        fallen: Whether a floating base is down, by tilt and by height.
        diverged: Whether the physics became invalid.
        distance_m: Distance to what the task asks for; NaN where there is none.
        forward_mps: Body-frame forward velocity of the base now; NaN for a fixed base.
    """

    success: bool | None = None
    fallen: bool = False
    diverged: bool = False
    distance_m: float = float("nan")
    forward_mps: float = float("nan")


class Plant(Protocol):
    """One simulated robot. Deterministic: the same seed and commands give the same states, bit for bit."""

    @property
    def period_ns(self) -> int:
        """Servo period; one `step`."""

    def reset(self, seed: int, task: str | None = None) -> str:
        """Puts everything at the start and returns the task text, empty where there is none."""

    def set_task(self, task: str) -> None:
        """Changes what counts as success."""

    def read(self, state: State) -> None:
        """Fills all of `state` but its capture time."""

    def images(self) -> list[NDArray[np.uint8]]:
        """What each camera sees now, in the robot file's order."""

    def step(self, command: Command | None) -> None:
        """Advances one servo period; None: no command has come and the drives go on with the last."""

    def drives(self, behaviour: str, kd: NDArray[np.float64] | None) -> None:
        """From now on the drives act by themselves: hold, damp, keep_last_target or limp."""

    def outcome(self) -> Outcome:
        """How the episode stands."""
