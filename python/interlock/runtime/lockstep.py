"""The whole data flow against a simulated robot in one process on a manual clock: the same stages, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from interlock import _core
from interlock.ports.driver import State
from interlock.ports.plant import Outcome, Plant
from interlock.runtime.bound import Bound

START_NS = 1_000_000_000  # the manual clock's zero is not 0, which means "never" in stage times
GAIT_ONSET_NS = 2_000_000_000  # speed is averaged after the start from standstill
NS_PER_S = 1_000_000_000


@dataclass(slots=True)
class LockstepResult:
    """What one episode did.

    Attributes:
        ticks: Ticks executed.
        outcome: How the episode stood at its end.
        forward_mps: Mean body-frame forward velocity after gait onset; NaN for a fixed base.
        limited: Ticks in which the guard changed a command.
        refused: Ticks in which the guard refused one.
        codes: How often each code acted, by word.
        modes: Mode name of every transition, in order.
        commands: Targets sent, when asked to keep them. Shape (ticks, n), SI.
        status: The core's final counters.
    """

    ticks: int = 0
    outcome: Outcome = field(default_factory=Outcome)
    forward_mps: float = float("nan")
    limited: int = 0
    refused: int = 0
    codes: dict[str, int] = field(default_factory=dict)
    modes: list[str] = field(default_factory=list)
    commands: NDArray[np.float64] | None = None
    status: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moment:
    """One tick as it happened, before the plant moves on.

    Attributes:
        number: Of the tick, from 0.
        done: What the core did.
        flat: The state it saw, SI. Shape (3n + 10,).
        images: Newest image of each camera.
        names: Mode names by number.
    """

    number: int
    done: _core.Tick
    flat: NDArray[np.float64]
    images: list[NDArray[np.uint8]]
    names: dict[int, str]

    @property
    def mode(self) -> str:
        """Name of the mode."""
        return self.names[self.done.mode]


Watcher = Callable[[Moment], str | None]
"""Sees every tick; may return a request (`stop`, `quit` ends the episode)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What to run.

    Attributes:
        seconds: Longest simulated duration.
        seed: Of the plant.
        task: Task text, for a policy that takes one; None: the plant chooses.
        goal: Velocity goal.
        guard: False for the comparison run of the simulation gate.
        stop_on_success: End once the plant says that the task is reached.
        keep_commands: Return every target.
        recording: File to record into.
        record_images: How images are recorded.
        header: Facts for the recording's header.
    """

    seconds: float
    seed: int = 0
    task: str | None = None
    goal: tuple[float, float, float] | None = None
    guard: bool = True
    stop_on_success: bool = True
    keep_commands: bool = False
    recording: Path | None = None
    record_images: Literal["png", "raw", "none"] = "png"
    header: str = "{}"


def run_lockstep(
    bound: Bound,
    plant: Plant,
    episode: Episode,
    *,
    watch: Watcher | None = None,
) -> LockstepResult:
    """Runs one episode from reset.

    Args:
        bound: Policy and robot.
        plant: The simulated robot.
        episode: What to run.
        watch: Sees every tick.

    Raises:
        InterlockError: Task or goal that the policy does not take.
    """
    task = plant.reset(episode.seed, episode.task)
    core = _core.Lockstep(
        bound.plan_json,
        bound.graph,
        str(bound.library),
        recording=None if episode.recording is None else str(episode.recording),
        header_json=episode.header,
        record_images=episode.record_images,
        guard=episode.guard,
    )
    try:
        core.set_goal(bound.velocity(episode.goal), bound.tokens(task if bound.tokenizer else None), task)
        return _loop(bound, plant, episode, core, watch)
    finally:
        core.close()


def _loop(
    bound: Bound,
    plant: Plant,
    episode: Episode,
    core: _core.Lockstep,
    watch: Watcher | None,
) -> LockstepResult:
    names = _core.mode_names()
    state = State(bound.joints)
    cameras = [int(each["period_ns"]) for each in bound.plan["cameras"]]
    result = LockstepResult()
    kept: list[NDArray[np.float64]] = []
    speeds: list[float] = []
    last_mode = ""
    pictures: list[NDArray[np.uint8]] = []
    core.request("arm")
    for tick in range(int(episode.seconds * NS_PER_S) // bound.tick_ns):
        now = START_NS + tick * bound.tick_ns
        elapsed = now - START_NS
        plant.read(state)
        due = [camera for camera, period in enumerate(cameras) if elapsed % period < bound.tick_ns]
        if due:
            pictures = plant.images()
            for camera in due:
                core.image(camera, pictures[camera], now)
        flat = bound.to_si(state.flat)
        done = core.step(now, flat, now)
        mode = names[done.mode]
        if mode != last_mode:
            result.modes.append(mode)
            last_mode = mode
            if mode == "Armed":
                core.request("start")
        result.limited += done.ruling == 1
        result.refused += done.ruling == 2
        for code in done.codes:
            word = _core.code_word(code)
            result.codes[word] = result.codes.get(word, 0) + 1
        if watch is not None and (request := watch(Moment(tick, done, flat, pictures, names))) is not None:
            if request == "quit":
                break
            core.request(request)
        if done.running:  # until then a floating base is kept where it stands
            plant.step(bound.to_robot(done.kind, done.command, running=True) if done.sent else None)
        if episode.keep_commands:
            kept.append(done.command[0].copy())
        result.ticks += 1
        result.outcome = plant.outcome()
        if elapsed >= GAIT_ONSET_NS:
            speeds.append(result.outcome.forward_mps)
        if result.outcome.fallen or result.outcome.diverged:
            break
        if episode.stop_on_success and result.outcome.success:
            break
    result.forward_mps = float(np.mean(speeds)) if speeds else float("nan")
    result.commands = np.stack(kept) if kept else None
    result.status = core.status()
    return result
