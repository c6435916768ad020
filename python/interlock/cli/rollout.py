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
from interlock.runtime.lockstep import Episode, Moment, run_lockstep
from interlock.runtime.tokens import Tokenizer

SETTLING_S = 5.0  # from arming to the start, at most


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
        count = -(-steps * timing["ticks_per_period"] // timing["ticks_per_inference"])
        goal = _middle_goal(plan)
        states: list[NDArray[np.float64]] = []
        images: dict[str, list[NDArray[np.uint8]]] = {each["name"]: [] for each in plan["cameras"]}

        started: list[int] = []
        refused: list[str] = []

        def note(moment: Moment) -> str | None:
            if moment.mode == "Running" and not started:
                started.append(moment.number)
            if moment.mode == "Stopping":
                codes = ", ".join(_core.code_word(code) for code in moment.done.codes)
                refused.append(f"stopped {_seconds(plan, moment.number - started[0])} after its start: {codes}")
                return "quit"
            if moment.done.offered and moment.mode == "Running":
                states.append(moment.flat.copy())
                for name, pixels in zip(images, moment.images, strict=True):
                    images[name].append(pixels.copy())
            return "quit" if len(states) >= count else None

        seconds = SETTLING_S + steps * timing["ticks_per_period"] * timing["tick_ns"] / 1e9
        episode = Episode(
            seconds=seconds, seed=seed, task=task or None, goal=goal, stop_on_success=False, record_images="none"
        )
        result = run_lockstep(bound, make_plant(self._driver, bound), episode, watch=note)
        made = len(states)
        observations = Observations(
            joints=tuple(plan["joints"]["names"]),
            state=np.stack(states) if states else np.zeros((0, 3 * bound.joints + 10)),
            images={name: np.stack(taken) for name, taken in images.items() if taken},
            goal=None if goal is None else np.tile(np.array(goal), (made, 1)),
            tasks=(task,) if task else (),
            task=np.full(made, 0 if task else -1, dtype=np.int64),
            origin="simulation",
        )
        ended = refused[0] if refused else ""
        if not started:
            ended = f"never started: {result.status['request_refused'] or result.status['cause'] or result.modes[-1]}"
        elif result.outcome.fallen or result.outcome.diverged:
            word = "fell" if result.outcome.fallen else "made the physics diverge"
            ended = f"{word} {_seconds(plan, result.ticks - started[0])} after its start"
        acted = (result.limited + result.refused) / max(1, result.ticks - started[0] if started else 0)
        return Walked(observations=observations, ended=ended, acted=acted, codes=result.codes)


def _seconds(plan: dict[str, Any], ticks: int) -> str:
    return f"{ticks * plan['timing']['tick_ns'] / 1e9:.2f} s"


def _middle_goal(plan: dict[str, Any]) -> tuple[float, float, float] | None:
    """Half of the largest forward goal: a policy that walks shows more than one that stands."""
    ranges = plan["goal"]["velocity"]
    return None if ranges is None else (float(ranges[0][1]) / 2, 0.0, 0.0)
