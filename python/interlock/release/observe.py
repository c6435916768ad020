"""What verification looks at: observations from a person, from the simulated robot, or made up and marked as such."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from interlock.artifact.observations import Observations, flat_states

Plan = dict[str, Any]
F64 = NDArray[np.float64]

_WALK = 3.0  # how many start envelopes a made-up rollout wanders from the start pose
_PULL = 0.05  # of the way back, per step
_STILL = 50  # steps between two goals


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """A rollout and how it went.

    Attributes:
        observations: What the policy saw, at every inference.
        ended: Why it ended before its time, in words; empty where it did not.
        acted: Share of ticks in which the guard held a target back or refused it; smoothing is not counted.
        codes: How often each code acted.
    """

    observations: Observations
    ended: str = ""
    acted: float = 0.0
    codes: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """How it went, as evidence carries it."""
        return {"ended": self.ended, "acted": self.acted, "codes": dict(self.codes)}


class Rollout(Protocol):
    """Runs a policy in closed loop on its simulated robot, behind the guard, and records what it sees."""

    def __call__(self, plan: Plan, graph: bytes, *, steps: int, seed: int, task: str) -> Walked:
        """`steps` control periods from reset. `task` is empty for a policy without language."""


def made_up_samples(plan: Plan, count: int, *, tasks: tuple[str, ...], seed: int = 0) -> Observations:
    """Independent observations inside the start envelope."""
    draw = np.random.default_rng([seed, 1])
    n = len(plan["joints"]["names"])
    state = flat_states(count, n)
    start, within = np.asarray(plan["start"]["pose"]), np.asarray(plan["start"]["within_pos"])
    state[:, :n] = start + draw.uniform(-1.0, 1.0, (count, n)) * within
    state[:, n : 2 * n] = draw.normal(0.0, 0.2, (count, n))
    state[:, 2 * n : 3 * n] = 0.0
    _base(state, n, draw.normal(0.0, 0.05, (count, 3)), draw.normal(0.0, 0.2, (count, 6)))
    goals = _goals(plan, draw, count)
    return _observations(plan, state, goals, tasks, draw)


def made_up_rollout(plan: Plan, count: int, *, tasks: tuple[str, ...], seed: int = 0) -> Observations:
    """A random walk around the start pose, inside the limits, its velocity the one it moves with."""
    draw = np.random.default_rng([seed, 2])
    n = len(plan["joints"]["names"])
    period_s = _inference_s(plan)
    start, within = np.asarray(plan["start"]["pose"]), np.asarray(plan["start"]["within_pos"])
    low, high = _range(plan, start, within)
    pos = np.empty((count, n))
    tilt = np.zeros((count, 3))
    here, lean = start.copy(), np.zeros(3)
    for index in range(count):
        pos[index], tilt[index] = here, lean
        here = np.clip(here + _PULL * (start - here) + draw.normal(0.0, 0.3, n) * within, low, high)
        lean = (1 - _PULL) * lean + draw.normal(0.0, 0.02, 3)
    state = flat_states(count, n)
    state[:, :n] = pos
    state[:, n : 2 * n] = np.gradient(pos, period_s, axis=0) if count > 1 else 0.0
    state[:, 2 * n : 3 * n] = 0.0
    _base(state, n, tilt, draw.normal(0.0, 0.2, (count, 6)))
    goals = _goals(plan, draw, count // _STILL + 1)
    held = None if goals is None else np.repeat(goals, _STILL, axis=0)[:count]
    return _observations(plan, state, held, tasks, draw)


def periods_per_inference(plan: Plan) -> int:
    """Control periods between two observations of a rollout."""
    timing = plan["timing"]
    return max(1, int(timing["ticks_per_inference"]) // int(timing["ticks_per_period"]))


def _inference_s(plan: Plan) -> float:
    return float(plan["timing"]["tick_ns"]) * int(plan["timing"]["ticks_per_inference"]) * 1e-9


def _range(plan: Plan, start: F64, within: F64) -> tuple[F64, F64]:
    limits = plan["limits"]["pos"] or []
    low, high = start - _WALK * within, start + _WALK * within
    if limits:
        low = np.maximum(low, [each["lo"] for each in limits])
        high = np.minimum(high, [each["hi"] for each in limits])
    return np.minimum(low, start), np.maximum(high, start)


def _base(state: F64, n: int, tilt: F64, velocity: F64) -> None:
    """Small rotations about all axes as quaternions, and the velocities of the base."""
    half = tilt / 2
    quat = np.column_stack([np.ones(len(tilt)), half])
    state[:, 3 * n : 3 * n + 4] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
    state[:, 3 * n + 4 : 3 * n + 10] = velocity


def _goals(plan: Plan, draw: np.random.Generator, count: int) -> F64 | None:
    ranges = plan["goal"]["velocity"]
    if ranges is None:
        return None
    low, high = np.asarray(ranges).T
    return np.asarray(draw.uniform(low, high, (count, 3)))


def _observations(
    plan: Plan, state: F64, goal: F64 | None, tasks: tuple[str, ...], draw: np.random.Generator
) -> Observations:
    count = len(state)
    images = {
        str(camera["name"]): draw.integers(0, 256, (count, camera["height"], camera["width"], 3), dtype=np.uint8)
        for camera in plan["cameras"]
    }
    task = np.arange(count) % len(tasks) if tasks else np.full(count, -1)
    return Observations(
        joints=tuple(plan["joints"]["names"]),
        state=state,
        images=images,
        goal=goal,
        tasks=tasks,
        task=task.astype(np.int64),
        origin="synthetic",
    )
