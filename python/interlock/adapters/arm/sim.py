"""The tabletop arm behind the port that every simulated robot offers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from interlock.adapters.arm.plant import ArmPlant
from interlock.ports.driver import Command, CommandKind, State
from interlock.ports.plant import Outcome


class ArmSim:
    """`ArmPlant` as a `Plant`: positions in, state and images out."""

    def __init__(self) -> None:
        self._arm = ArmPlant()

    @property
    def period_ns(self) -> int:
        """Servo period of the drives."""
        return self._arm.period_ns

    def reset(self, seed: int, task: str | None = None) -> str:
        """New blocks, arm at home; returns the task."""
        return self._arm.reset(seed, task)

    def set_task(self, task: str) -> None:
        """Changes the block that counts."""
        self._arm.set_task(task)

    def read(self, state: State) -> None:
        """Joint positions, velocities, torques; the base does not move."""
        state.pos[:], state.vel[:], state.torque[:] = self._arm.state()

    def images(self) -> list[NDArray[np.uint8]]:
        """The front camera."""
        return [self._arm.image()]

    def step(self, command: Command | None) -> None:
        """One servo period towards the position target."""
        if command is not None and command.kind is not CommandKind.POSITION:
            self._arm.release()
            self._arm.step(None)
            return
        self._arm.step(None if command is None else command.target)

    def drives(self, behaviour: str, kd: NDArray[np.float64] | None) -> None:
        """Hold where the arm is, keep the last target, or let go (these drives cannot damp)."""
        del kd
        if behaviour == "hold":
            self._arm.step(self._arm.state()[0])
        elif behaviour != "keep_last_target":
            self._arm.release()

    def outcome(self) -> Outcome:
        """Whether the fingertip is at the block."""
        return Outcome(success=self._arm.success(), distance_m=self._arm.distance_m())
