"""A policy folder joined to a robot: everything that a run needs, loaded and verified once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.errors import InterlockError
from interlock.ports.driver import Command, CommandKind
from interlock.runtime.tokens import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One policy bound to one robot.

    Attributes:
        name: The policy's name.
        plan: Contract, robot and binding in numbers; see the core's plan.
        graph: The graph's bytes, those that were hashed: what is verified is what runs.
        library: libonnxruntime.
        tokenizer: For task text; None for a policy without language.
        robot: The robot file's expanded form.
        robot_folder: Where paths in the robot file start.
    """

    name: str
    plan: dict[str, Any]
    graph: bytes
    library: Path
    tokenizer: Tokenizer | None
    robot: dict[str, Any]
    robot_folder: Path

    @property
    def plan_json(self) -> str:
        """The plan as it crosses into the core."""
        return json.dumps(self.plan)

    @property
    def joints(self) -> int:
        """Degrees of freedom `n`."""
        return len(self.plan["joints"]["names"])

    @property
    def tick_ns(self) -> int:
        """Servo period."""
        return int(self.plan["timing"]["tick_ns"])

    def tokens(self, task: str | None) -> NDArray[np.int64] | None:
        """Token ids of a task. Raises `InterlockError` when the policy takes no text, or needs one and has none."""
        if self.tokenizer is None:
            if task:
                raise InterlockError(
                    code="task-not-taken",
                    where=f"task {task!r}",
                    expected="no task: this policy has no language input",
                    hint="leave --task out; a walking policy takes --goal",
                )
            return None
        if not task:
            raise InterlockError(
                code="task-missing",
                where=self.name,
                expected="a task text: this policy is told in words what to do",
                hint="add --task, for example --task 'reach the red block'",
            )
        return self.tokenizer.ids(task)

    def velocity(self, goal: tuple[float, float, float] | None) -> NDArray[np.float64] | None:
        """A velocity goal inside the contract's range. Raises `InterlockError` outside it."""
        ranges = self.plan["goal"]["velocity"]
        if ranges is None:
            if goal is not None:
                raise InterlockError(
                    code="goal-not-taken",
                    where="goal",
                    expected="no velocity goal: this policy has none",
                    hint="leave --goal out; this policy may take --task",
                )
            return None
        wanted = goal or (0.0, 0.0, 0.0)
        for part, value, (low, high) in zip(("lin_vel_x", "lin_vel_y", "ang_vel_z"), wanted, ranges, strict=True):
            if not low <= value <= high:
                raise InterlockError(
                    code="goal-range",
                    where=f"goal {part}",
                    expected=f"{low} to {high}, what the policy was trained on",
                    got=str(value),
                )
        return np.array(wanted, dtype=np.float64)

    def to_robot(self, kind: int, rows: NDArray[np.float64], *, running: bool) -> Command:
        """A command of the core (SI) in the robot's units. Shape of `rows` (5, n)."""
        si_per_unit = np.asarray(self.plan["joints"]["si_per_unit"])
        return Command(
            CommandKind(kind),
            running,
            rows[0] / si_per_unit,
            rows[1] / si_per_unit,
            rows[2],
            rows[3],
            rows[4],
        )

    def to_si(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """A flat state in the robot's units, in SI."""
        si_per_unit = np.asarray(self.plan["joints"]["si_per_unit"])
        n = self.joints
        converted: NDArray[np.float64] = flat.copy()
        converted[:n] *= si_per_unit
        converted[n : 2 * n] *= si_per_unit
        return converted
