"""The tabletop arm as a plant: four position drives, three blocks, one camera, in MuJoCo."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from .raycast import RayCamera

SCENE = Path(__file__).with_name("scene.xml")

JOINTS = ("base_yaw", "shoulder", "elbow", "wrist")
HOME_RAD = (0.0, -0.15, 1.71, 1.58)  # fingertip 0.17 m in front of the base axis, 0.20 m above the table, pointing down

COLOURS = ("red", "green", "blue")
TASKS: Mapping[str, str] = {f"reach the {colour} block": colour for colour in COLOURS}

PERIOD_NS = 5_000_000  # servo period of the drives, 200 Hz
IMAGE_PERIOD_NS = 50_000_000  # camera period, 20 Hz
IMAGE_SIZE = 96  # pixels, both ways

# Where blocks are put: inside the arm's reach with the hand pointing down, and inside the picture.
BLOCK_RADIUS_M = (0.19, 0.33)
BLOCK_YAW_RAD = (-1.05, 1.05)
BLOCK_HALF_EDGE_M = 0.022
BLOCK_SPACING_M = 0.10  # between centres; more than twice SUCCESS_M, so reaching one block never counts for another
ARM_CLEARANCE_M = 0.08  # from the fingertip when the arm stays where it is

# Half an edge (22 mm) + fingertip radius (8 mm) + 15 mm: at most 15 mm short of touching a face.
SUCCESS_M = 0.045
SUCCESS_HOLD_NS = 500_000_000  # and staying there: sweeping past is not reaching


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    body: int
    qpos: int
    dof: int


class ArmPlant:
    """A simulated arm that advances one servo period at a time, reproducible from its seed.

    Positions are radians, torques N*m, in the order of `JOINTS`. Nothing here knows about guards, rates of
    policies or clocks: a driver process paces it.
    """

    def __init__(self) -> None:
        self._model = mujoco.MjModel.from_xml_path(str(SCENE))
        self._data = mujoco.MjData(self._model)
        self._camera = RayCamera(self._model, "front", IMAGE_SIZE, IMAGE_SIZE)
        self._steps = round(PERIOD_NS * 1e-9 / self._model.opt.timestep)
        self._tip = self._model.site("fingertip").id
        self._blocks = {colour: self._find_block(colour) for colour in COLOURS}
        self._target: NDArray[np.float64] = np.array(HOME_RAD)
        self._periods = 0
        self._near_periods = 0
        self._reached = False
        self._task = next(iter(TASKS))
        self.reset(0)

    @property
    def period_ns(self) -> int:
        """Servo period."""
        return PERIOD_NS

    @property
    def time_ns(self) -> int:
        """Simulated time since the last reset."""
        return self._periods * PERIOD_NS

    @property
    def task(self) -> str:
        """What `distance_m` and `success` are about."""
        return self._task

    @property
    def target_rad(self) -> NDArray[np.float64]:
        """Position target the drives follow. Shape (4,)."""
        return np.array(self._target)

    def reset(self, seed: int, task: str | None = None, *, keep_arm: bool = False) -> str:
        """Puts the blocks somewhere else and the arm at home, and returns the task.

        Args:
            seed: Decides the block positions and, where no task is given, the task.
            task: One of `TASKS`.
            keep_arm: Leave the arm and its drives as they are; blocks keep clear of the fingertip.
        """
        rng = np.random.default_rng(seed)
        chosen = str(rng.choice(list(TASKS)))
        arm = (self._data.qpos[:4].copy(), self._data.qvel[:4].copy(), self._data.ctrl.copy())
        tip = self.tip_m()
        mujoco.mj_resetData(self._model, self._data)
        if keep_arm:
            self._data.qpos[:4], self._data.qvel[:4], self._data.ctrl[:] = arm
        else:
            self._target = np.array(HOME_RAD)
            self._data.qpos[:4] = HOME_RAD
            self._data.ctrl[:] = HOME_RAD
            self._power(on=True)
        places = _scatter(rng, avoid=tip[:2] if keep_arm else None)
        for block, (x, y, yaw) in zip(self._blocks.values(), places, strict=True):
            pose = [x, y, BLOCK_HALF_EDGE_M, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
            self._data.qpos[block.qpos : block.qpos + 7] = pose
        mujoco.mj_forward(self._model, self._data)
        self._periods = 0
        self.set_task(chosen if task is None else task)
        return self._task

    def set_task(self, task: str) -> None:
        """Changes what counts as success from now on.

        Raises:
            ValueError: The task is none of `TASKS`.
        """
        if task not in TASKS:
            msg = f"task: expected one of {', '.join(TASKS)}, got {task!r}"
            raise ValueError(msg)
        self._task = task
        self._near_periods = 0
        self._reached = False

    def place_arm(self, position_rad: NDArray[np.float64]) -> None:
        """Puts the arm at rest in a pose, drives holding it. Shape (4,)."""
        self._target = np.array(position_rad, dtype=np.float64)
        self._data.qpos[:4] = position_rad
        self._data.qvel[:4] = 0.0
        self._data.ctrl[:] = position_rad
        mujoco.mj_forward(self._model, self._data)

    def step(self, target_rad: NDArray[np.float64] | None) -> None:
        """Advances one servo period.

        Args:
            target_rad: New position target, shape (4,); it also energises limp drives. None when no command
                came: the drives keep following the last target, or stay limp.
        """
        if target_rad is not None:
            self._target[:] = target_rad
            self._data.ctrl[:] = target_rad
            self._power(on=True)
        for _ in range(self._steps):
            mujoco.mj_step(self._model, self._data)
        mujoco.mj_kinematics(self._model, self._data)
        self._periods += 1
        self._near_periods = self._near_periods + 1 if self.distance_m() <= SUCCESS_M else 0
        self._reached |= self._near_periods * PERIOD_NS >= SUCCESS_HOLD_NS

    def release(self) -> None:
        """Switches the drives off: the arm goes limp until the next target."""
        self._power(on=False)

    def state(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Measured joint position (rad), velocity (rad/s) and drive torque (N*m), each of shape (4,)."""
        return self._data.qpos[:4].copy(), self._data.qvel[:4].copy(), self._data.actuator_force.copy()

    def image(self) -> NDArray[np.uint8]:
        """What the front camera sees now, RGB. Shape (96, 96, 3)."""
        return self._camera.image(self._data)

    def tip_m(self) -> NDArray[np.float64]:
        """Position of the fingertip's centre in the world frame (base on the table, x forward). Shape (3,)."""
        return np.array(self._data.site_xpos[self._tip])

    def block_m(self, colour: str) -> NDArray[np.float64]:
        """Position of a block's centre in the world frame. Shape (3,)."""
        return np.array(self._data.xpos[self._blocks[colour].body])

    def distance_m(self) -> float:
        """Distance from the fingertip's centre to the centre of the block of the task."""
        return float(np.linalg.norm(self.tip_m() - self.block_m(TASKS[self._task])))

    def success(self) -> bool:
        """Whether the fingertip has been within `SUCCESS_M` for `SUCCESS_HOLD_NS` since the task was set."""
        return self._reached

    def _power(self, *, on: bool) -> None:
        flag = int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
        flags = self._model.opt.disableflags
        self._model.opt.disableflags = flags & ~flag if on else flags | flag

    def _find_block(self, colour: str) -> _Block:
        joint = self._model.joint(colour)
        return _Block(body=self._model.body(colour).id, qpos=int(joint.qposadr[0]), dof=int(joint.dofadr[0]))


def _scatter(rng: np.random.Generator, avoid: NDArray[np.float64] | None) -> list[tuple[float, float, float]]:
    """Draws (x_m, y_m, yaw_rad) for each block until all keep their distance."""
    while True:
        radius = rng.uniform(*BLOCK_RADIUS_M, size=len(COLOURS))
        angle = rng.uniform(*BLOCK_YAW_RAD, size=len(COLOURS))
        yaw = rng.uniform(-np.pi / 4, np.pi / 4, size=len(COLOURS))
        xy = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        gaps = [np.linalg.norm(a - b) for i, a in enumerate(xy) for b in xy[:i]]
        clear = avoid is None or float(np.linalg.norm(xy - avoid, axis=1).min()) >= ARM_CLEARANCE_M
        if min(gaps) >= BLOCK_SPACING_M and clear:
            return [(float(x), float(y), float(w)) for (x, y), w in zip(xy, yaw, strict=True)]
