"""Closed loop on the simulated robot, recorded observation by observation: what `verify` replays through every leg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.artifact.observations import Observations
from interlock.cli.wiring import make_plant
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

    def __call__(self, plan: dict[str, Any], graph: bytes, *, steps: int, seed: int, task: str) -> Observations:
        """What the policy sees at every inference of `steps` control periods from its start."""
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

        def note(moment: Moment) -> str | None:
            if moment.done.offered and moment.mode == "Running":
                states.append(moment.flat.copy())
                for name, pixels in zip(images, moment.images, strict=True):
                    images[name].append(pixels.copy())
            return "quit" if len(states) >= count else None

        seconds = SETTLING_S + steps * timing["ticks_per_period"] * timing["tick_ns"] / 1e9
        episode = Episode(
            seconds=seconds, seed=seed, task=task or None, goal=goal, stop_on_success=False, record_images="none"
        )
        run_lockstep(bound, make_plant(self._driver, bound), episode, watch=note)
        made = len(states)
        return Observations(
            joints=tuple(plan["joints"]["names"]),
            state=np.stack(states) if states else np.zeros((0, 3 * bound.joints + 10)),
            images={name: np.stack(taken) for name, taken in images.items() if taken},
            goal=None if goal is None else np.tile(np.array(goal), (made, 1)),
            tasks=(task,) if task else (),
            task=np.full(made, 0 if task else -1, dtype=np.int64),
            origin="simulation",
        )


def _middle_goal(plan: dict[str, Any]) -> tuple[float, float, float] | None:
    """Half of the largest forward goal: a policy that walks shows more than one that stands."""
    ranges = plan["goal"]["velocity"]
    return None if ranges is None else (float(ranges[0][1]) / 2, 0.0, 0.0)
