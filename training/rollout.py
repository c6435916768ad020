"""Plays the policy on the arm the way a robot would: asynchronously, actions chosen by time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from interlock.adapters.arm.plant import PERIOD_NS, TASKS, ArmPlant

from . import checkpoint
from .episodes import ACTION_PERIOD_NS

EPISODE_NS = 6_000_000_000
LATENCY_TICKS = 1  # from an observation to the first target made of it

Observation = tuple[NDArray[np.uint8], NDArray[np.float64]]

# What an observation becomes when the contract is wrong about it.
MISTAKES: Mapping[str, Callable[[Observation], Observation]] = {
    "red and blue swapped": lambda seen: (seen[0][:, :, ::-1], seen[1]),
    "degrees for radians": lambda seen: (seen[0], np.degrees(seen[1])),
    "image mirrored": lambda seen: (seen[0][:, ::-1], seen[1]),
    "image upside down": lambda seen: (seen[0][::-1], seen[1]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How chunks are executed.

    Attributes:
        latency_ticks: Servo periods from an observation to the first target made of its chunk.
        fade_ns: Time over which the step at a handover fades out, as `1 - 3u^2 + 2u^3`; 0 lets it through.
        cubic: Catmull-Rom between actions instead of straight lines.
        mistake: One of `MISTAKES`.
    """

    latency_ticks: int = LATENCY_TICKS
    fade_ns: int = ACTION_PERIOD_NS
    cubic: bool = True
    mistake: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What one episode came to.

    Attributes:
        success: The plant's own judgement, within the time.
        time_ns: Until success, or the whole episode.
        targets_rad: Every target sent, from the first chunk on. Shape (ticks, 4).
        jumps_rad: From the old chunk to the new at each handover, before fading. Shape (handovers, 4).
        handovers: Rows of `targets_rad` at which a new chunk took over.
    """

    success: bool
    time_ns: int
    targets_rad: NDArray[np.float64]
    jumps_rad: NDArray[np.float64]
    handovers: list[int]

    def between_handovers(self) -> list[NDArray[np.float64]]:
        """The targets cut at each handover."""
        return np.split(self.targets_rad, self.handovers)


@dataclass(slots=True)
class _Chunk:
    start_tick: int
    actions: NDArray[np.float64] = field(repr=False)

    def at(self, tick: int, *, cubic: bool) -> NDArray[np.float64]:
        place = (tick - self.start_tick) * PERIOD_NS / ACTION_PERIOD_NS
        last = len(self.actions) - 1
        index = min(int(place), last)
        part = min(place - index, 1.0) if index < last else 0.0
        a, b = self.actions[index], self.actions[min(index + 1, last)]
        if not cubic:
            return np.asarray(a + part * (b - a))
        before = self.actions[index - 1] if index > 0 else 2 * a - b
        after = self.actions[index + 2] if index + 2 <= last else 2 * b - a
        slope_a, slope_b = (b - before) / 2, (after - a) / 2
        s2, s3 = part**2, part**3
        return np.asarray(
            (2 * s3 - 3 * s2 + 1) * a + (s3 - 2 * s2 + part) * slope_a + (3 * s2 - 2 * s3) * b + (s3 - s2) * slope_b
        )


class Policy:
    """The committed checkpoint, run by torch through its own pre- and postprocessing."""

    def __init__(self) -> None:
        self._model, self.config = checkpoint.read()
        self._file = checkpoint.load_model_file()

    @torch.no_grad()
    def __call__(self, image: NDArray[np.uint8], position_rad: NDArray[np.float64], task: str) -> NDArray[np.float64]:
        """Returns joint targets in rad. Shape (16, 4)."""
        inputs = self._file.preprocess(self.config, image, position_rad, task, checkpoint.FOLDER / "tokenizer.json")
        return np.asarray(self._file.postprocess(self.config, self._model(*inputs), position_rad))


def play(plant: ArmPlant, policy: Policy, seed: int, task: str, manner: Manner) -> Episode:
    """Plays one episode from home."""
    plant.reset(seed, task)
    see = MISTAKES[manner.mistake] if manner.mistake else None
    ticks_between = checkpoint.EXECUTE * ACTION_PERIOD_NS // PERIOD_NS
    chunk: _Chunk | None = None
    pending: _Chunk | None = None
    seam_tick, seam_rad = 0, np.zeros(4)
    targets: list[NDArray[np.float64]] = []
    jumps: list[NDArray[np.float64]] = []
    handovers: list[int] = []
    for tick in range(EPISODE_NS // PERIOD_NS):
        if tick % ticks_between == 0:
            seen = plant.image(), plant.state()[0]
            image, position = see(seen) if see else seen
            pending = _Chunk(tick, policy(np.ascontiguousarray(image), position, task))
        if pending is not None and tick - pending.start_tick >= manner.latency_ticks:
            if targets and chunk is not None:
                seam_rad = chunk.at(tick, cubic=manner.cubic) - pending.at(tick, cubic=manner.cubic)
                seam_tick = tick
                jumps.append(-seam_rad)
                handovers.append(len(targets))
            chunk, pending = pending, None
        if chunk is None:
            plant.step(None)
            continue
        since = (tick - seam_tick) * PERIOD_NS
        part = min(since / manner.fade_ns, 1.0) if manner.fade_ns else 1.0
        targets.append(chunk.at(tick, cubic=manner.cubic) + (1 - 3 * part**2 + 2 * part**3) * seam_rad)
        plant.step(targets[-1])
        if plant.success():
            break
    return Episode(
        success=plant.success(),
        time_ns=plant.time_ns,
        targets_rad=np.stack(targets),
        jumps_rad=np.stack(jumps),
        handovers=handovers,
    )


def task_of(seed: int) -> str:
    """The task of an unseen episode: the colours take turns."""
    return list(TASKS)[seed % len(TASKS)]
