"""Closed loop on the simulated robot, recorded observation by observation: what `verify` replays through every leg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock import _core
from interlock.artifact.observations import Observations
from interlock.cli.wiring import make_plant
from interlock.release.observe import Walked
from interlock.runtime.bound import Bound
from interlock.runtime.library import onnxruntime_library
from interlock.runtime.lockstep import Episode, LockstepResult, Moment, run_lockstep
from interlock.runtime.tokens import Tokenizer

SETTLING_S = 5.0  # from arming to the start, at most
SMOOTHING = {"velocity", "acceleration", "jerk"}  # of a trajectory: how it is followed, not whether it makes sense


class SimRollout:
    """Runs a policy on its robot's simulation; see `interlock.release.observe.Rollout`."""

    def __init__(self, driver: str, robot: dict[str, Any], folder: Path, tokenizer: Tokenizer | None) -> None:
        self._driver = driver
        self._robot = robot
        self._folder = folder
        self._tokenizer = tokenizer

    def __call__(self, plan: dict[str, Any], graph: bytes, *, steps: int, seed: int, task: str) -> Walked:
        """What the policy sees at every inference of `steps` control periods from its start, and how that went."""
        bound = Bound(
            name="rollout",
            plan=plan,
            graph=graph,
            library=onnxruntime_library(),
            tokenizer=self._tokenizer,
            robot=self._robot,
            robot_folder=self._folder,
        )
        timing = plan["timing"]
        goal = _middle_goal(plan)
        seen = _Seen(plan, -(-steps * timing["ticks_per_period"] // timing["ticks_per_inference"]))
        seconds = SETTLING_S + steps * timing["ticks_per_period"] * timing["tick_ns"] / 1e9
        episode = Episode(
            seconds=seconds, seed=seed, task=task or None, goal=goal, stop_on_success=False, record_images="none"
        )
        result = run_lockstep(bound, make_plant(self._driver, bound), episode, watch=seen)
        made = len(seen.states)
        observations = Observations(
            joints=tuple(plan["joints"]["names"]),
            state=np.stack(seen.states) if made else np.zeros((0, 3 * bound.joints + 10)),
            images={name: np.stack(taken) for name, taken in seen.images.items() if taken},
            goal=None if goal is None else np.tile(np.array(goal), (made, 1)),
            tasks=(task,) if task else (),
            task=np.full(made, 0 if task else -1, dtype=np.int64),
            origin="simulation",
        )
        return Walked(
            observations=observations,
            ended=seen.ended(result),
            acted=seen.acted / max(1, seen.ticks),
            codes=result.codes,
        )


class _Seen:
    """Watches the rollout: what the policy saw, when it was stopped, how often the guard had to hold it back."""

    def __init__(self, plan: dict[str, Any], wanted: int) -> None:
        self._tick_s = plan["timing"]["tick_ns"] / 1e9
        self._wanted = wanted
        self._stopped = ""
        self.states: list[NDArray[np.float64]] = []
        self.images: dict[str, list[NDArray[np.uint8]]] = {each["name"]: [] for each in plan["cameras"]}
        self.ticks = 0
        self.acted = 0

    def __call__(self, moment: Moment) -> str | None:
        """Sees one tick; ends the rollout when enough was seen, or when the policy lost the robot."""
        codes = [_core.code_word(code) for code in moment.done.codes]
        if moment.mode == "Stopping":
            self.acted += 1
            self._stopped = f"stopped {self._after(self.ticks)}: {', '.join(codes)}"
            self.ticks += 1
            return "quit"
        if moment.mode == "Running":
            self.ticks += 1
            self.acted += not SMOOTHING.issuperset(codes)
            if moment.done.offered:
                self.states.append(moment.flat.copy())
                for name, pixels in zip(self.images, moment.images, strict=True):
                    self.images[name].append(pixels.copy())
        return "quit" if len(self.states) >= self._wanted else None

    def ended(self, result: LockstepResult) -> str:
        """Why it ended before its time; empty where it did not."""
        if not self.ticks:
            return f"never started: {result.status['request_refused'] or result.status['cause'] or result.modes[-1]}"
        if result.outcome.fallen or result.outcome.diverged:
            word = "fell" if result.outcome.fallen else "made the physics diverge"
            return f"{word} {self._after(self.ticks)}"
        return self._stopped

    def _after(self, ticks: int) -> str:
        return f"{ticks * self._tick_s:.2f} s after its start"


def _middle_goal(plan: dict[str, Any]) -> tuple[float, float, float] | None:
    """Half of the largest forward goal: a policy that walks shows more than one that stands."""
    ranges = plan["goal"]["velocity"]
    return None if ranges is None else (float(ranges[0][1]) / 2, 0.0, 0.0)
