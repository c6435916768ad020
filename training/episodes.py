"""Episodes of the expert on the simulated arm, sampled into pairs of observation and chunk."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from interlock.adapters.arm.plant import BLOCK_YAW_RAD, HOME_RAD, PERIOD_NS, TASKS, ArmPlant

from .expert import Trajectory, plan
from .kinematics import fingertip, reach

CHUNK = 16
ACTION_PERIOD_NS = 50_000_000
TICKS_PER_SAMPLE = 18  # 90 ms, against the 50 ms of the actions, so that samples meet all phases of a motion
TASKS_PER_EPISODE = 3
DWELL_S = (0.3, 0.9)  # how long the expert stays on a block
INTERRUPTED = 0.3  # share of tasks that are replaced in mid-motion


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Raw observations with what the expert was about to do.

    Attributes:
        images: RGB. Shape (n, 96, 96, 3), uint8.
        positions_rad: Measured. Shape (n, 4), float32.
        tasks: Index into `TASKS`. Shape (n,), int64.
        targets_rad: Joint targets due 0, 50, ... ms after the observation. Shape (n, 16, 4), float32.
    """

    images: NDArray[np.uint8]
    positions_rad: NDArray[np.float32]
    tasks: NDArray[np.int64]
    targets_rad: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.tasks)


def generate(seeds: range, workers: int) -> Samples:
    """Plays one episode for each seed, in the same order whatever the number of workers."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(episode, seeds, chunksize=8))
    return Samples(
        images=np.concatenate([part.images for part in parts]),
        positions_rad=np.concatenate([part.positions_rad for part in parts]),
        tasks=np.concatenate([part.tasks for part in parts]),
        targets_rad=np.concatenate([part.targets_rad for part in parts]),
    )


def episode(seed: int) -> Samples:
    """Plays several tasks in a row from a random pose, some of them replaced before they are done."""
    rng = np.random.default_rng([seed, 1])
    plant = _plant()
    plant.reset(seed)
    plant.place_arm(_start(rng))
    texts = list(TASKS)
    images, positions, tasks, targets = [], [], [], []
    motion: Trajectory | None = None
    elapsed_s = 0.0
    order = rng.permutation(len(texts))[:TASKS_PER_EPISODE]
    for task in order:
        if motion is None:
            position, velocity, acceleration = plant.target_rad, np.zeros(4), np.zeros(4)
        else:
            position, velocity, acceleration = (motion.at(elapsed_s, k) for k in range(3))
        plant.set_task(texts[task])
        motion = plan(position, velocity, acceleration, plant.block_m(TASKS[texts[task]]))
        until_s = motion.duration_s + rng.uniform(*DWELL_S)
        if rng.random() < INTERRUPTED:
            until_s = rng.uniform(0.3, motion.duration_s)
        offset = int(rng.integers(TICKS_PER_SAMPLE))
        for tick in range(int(until_s * 1e9) // PERIOD_NS):
            elapsed_s = tick * PERIOD_NS * 1e-9
            if tick % TICKS_PER_SAMPLE == offset:
                images.append(plant.image())
                positions.append(plant.state()[0])
                tasks.append(task)
                targets.append([motion.at(elapsed_s + k * ACTION_PERIOD_NS * 1e-9) for k in range(CHUNK)])
            plant.step(motion.at(elapsed_s))
    return Samples(
        images=np.stack(images),
        positions_rad=np.stack(positions).astype(np.float32),
        tasks=np.array(tasks, dtype=np.int64),
        targets_rad=np.array(targets, dtype=np.float32),
    )


def _start(rng: np.random.Generator) -> NDArray[np.float64]:
    """Draws a pose at rest: near home, or anywhere above the table."""
    if rng.random() < 0.4:
        return np.array(HOME_RAD) + rng.normal(0.0, 0.05, size=4)
    while True:
        radius, height = rng.uniform(0.15, 0.34), rng.uniform(0.06, 0.26)
        yaw, pitch = rng.uniform(*BLOCK_YAW_RAD) * 1.15, rng.uniform(2.8, 3.3)
        tip = np.array([radius * np.cos(yaw), radius * np.sin(yaw), height])
        pose = reach(tip, pitch)
        if float(np.linalg.norm(fingertip(pose) - tip)) < 1e-6:
            return pose


_plant_of_process: list[ArmPlant] = []


def _plant() -> ArmPlant:
    if not _plant_of_process:
        _plant_of_process.append(ArmPlant())
    return _plant_of_process[0]
