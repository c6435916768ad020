"""Any robot with an MJCF file as a plant: one servo period per step, drives at the physics rate."""

import math
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from interlock.errors import InterlockError
from interlock.ports.driver import Command, State
from interlock.ports.plant import Outcome

from .mujoco_drives import Drives
from .mujoco_model import F64, load
from .mujoco_start import Start

FALLEN_TILT_RAD = 1.05  # 60 degrees: no walker measured came back from there
FALLEN_HEIGHT = 0.55  # of the start height; a flat collapse ends below 0.25 of it, walking stays above 0.9

# On these MuJoCo goes on with something else than was asked: another state, or no control at all.
_WARNINGS = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
    mujoco.mjtWarning.mjWARN_BADCTRL,
)


class MujocoPlant:
    """A simulated robot that advances one servo period at a time, reproducible from its seed.

    Joint arrays are in the order of `joints`: rad, rad/s, N*m. Nothing here knows about guards, policies or
    clocks. Until the first command after a reset the drives are limp (motors) or hold the start pose
    (position servos).

    Args:
        mjcf: The model file.
        joints: Full joint names in robot order.
        period_ns: Servo period, a whole multiple of the physics step.
        step_ns: Physics step; the model's own where absent.
        start: Where it starts; the model's own pose where absent.
        imu_site: Site that carries the IMU; absent: `imu`, `imu_in_pelvis`, else the root body.

    Raises:
        InterlockError: As `mujoco_model.load` and `Start.qpos`.
    """

    def __init__(
        self,
        mjcf: Path,
        joints: Sequence[str],
        *,
        period_ns: int,
        step_ns: int | None = None,
        start: Start | None = None,
        imu_site: str | None = None,
    ) -> None:
        # MuJoCo's own handler would write MUJOCO_LOG.TXT into the working folder; `step` reads the counters.
        mujoco.set_mju_user_warning(lambda _message: None)
        self._robot = load(mjcf, joints, period_ns=period_ns, step_ns=step_ns, imu_site=imu_site)
        self._data = mujoco.MjData(self._robot.model)
        self._period_ns = period_ns
        self._drives = Drives(self._robot)
        self._start = Start() if start is None else start
        self._start_qpos = self._start.qpos(self._robot)
        self._twist = np.zeros(6)
        self._turn = np.zeros(9)
        self.reset(0)

    @property
    def period_ns(self) -> int:
        """Servo period."""
        return self._period_ns

    @property
    def time_ns(self) -> int:
        """Simulated time since the last reset."""
        return self._periods * self._period_ns

    def reset(self, seed: int, task: str | None = None) -> str:
        """Puts the robot at rest in its start pose and returns the empty task.

        Args:
            seed: Decides the noise on the start pose; without noise all seeds are alike.
            task: Must be absent or empty.
        """
        self.set_task(task or "")
        robot, data = self._robot, self._data
        mujoco.mj_resetData(robot.model, data)
        noise = np.random.default_rng(seed).uniform(-1.0, 1.0, robot.qpos.size) * self._start.noise_rad
        data.qpos[:] = self._start_qpos
        data.qpos[robot.qpos] += noise
        self._drives.rest(data.qpos[robot.qpos])
        self._drives.act(data)
        mujoco.mj_forward(robot.model, data)
        self._periods = 0
        self._is_diverged = False
        self._start_height_m = float(self.base_position_m()[2])
        return ""

    def set_task(self, task: str) -> None:
        """Refuses every task but the empty one.

        Raises:
            InterlockError: `task-unknown`.
        """
        if task:
            raise InterlockError(
                code="task-unknown",
                where="task",
                expected="none",
                got=task,
                hint="this robot follows a velocity goal",
            )

    def check_gains(self, kp: F64, kd: F64) -> None:
        """Refuses gains that the drives cannot have; see `Drives.check_gains`. Shape (n,) each."""
        self._drives.check_gains(kp, kd)

    def read(self, state: State) -> None:
        """Measures the robot at the present instant: joints, and the base in the frame of the IMU."""
        data, robot = self._data, self._robot
        state.pos[:] = data.qpos[robot.qpos]
        state.vel[:] = data.qvel[robot.dof]
        state.torque[:] = data.qfrc_actuator[robot.dof]
        self._turn[:] = data.xmat[robot.root] if robot.imu is None else data.site_xmat[robot.imu]
        mujoco.mju_mat2Quat(state.quat_wxyz, self._turn)
        twist = self._imu_twist()
        state.ang_vel[:], state.lin_vel[:] = twist[:3], twist[3:]

    def images(self) -> list[NDArray[np.uint8]]:
        """No cameras."""
        return []

    def step(self, command: Command | None) -> None:
        """Advances one servo period. Once the simulation has diverged, nothing moves any more.

        Args:
            command: What the drives do from now on; None: they keep acting on the last command.

        Raises:
            InterlockError: As `Drives.command`.
        """
        if command is not None:
            self._drives.command(command)
        self._periods += 1
        for _ in range(self._robot.steps):
            if self._is_diverged:
                return
            self._drives.act(self._data)
            mujoco.mj_step(self._robot.model, self._data)
            self._is_diverged = any(self._data.warning[int(kind)].number for kind in _WARNINGS)
        # A step integrates last: what depends on positions and velocities would be one physics step old.
        mujoco.mj_kinematics(self._robot.model, self._data)
        mujoco.mj_comPos(self._robot.model, self._data)
        mujoco.mj_comVel(self._robot.model, self._data)

    def drives(self, behaviour: str, kd: F64 | None = None) -> None:
        """What the drives do by themselves after a command timeout, until the next command.

        Args:
            behaviour: `damp` (torque `-kd*dq`), `hold` (the position measured now, with the gains last used),
                `keep_last_target`, `limp`.
            kd: N*m*s/rad of `damp`. Shape (n,).
        """
        self._drives.alone(behaviour, kd, self._data.qpos[self._robot.qpos])

    def outcome(self) -> Outcome:
        """How the robot stands. A diverged simulation counts as a fall."""
        return Outcome(
            fallen=self.is_fallen(),
            diverged=self._is_diverged,
            forward_mps=float(self._imu_twist()[3]) if self._robot.is_floating else math.nan,
        )

    def base_position_m(self) -> F64:
        """Position of the root body in the world frame. Shape (3,)."""
        return np.array(self._data.xpos[self._robot.root])

    def is_fallen(self) -> bool:
        """Whether a floating base lies: tilted beyond 60 degrees, or far below the height it started from.

        Both count: a robot that collapses flat keeps its base level.
        """
        if self._is_diverged:
            return True
        upright = float(self._data.xmat[self._robot.root][8])
        height_m = float(self.base_position_m()[2])
        is_down = upright < math.cos(FALLEN_TILT_RAD) or height_m < FALLEN_HEIGHT * self._start_height_m
        return self._robot.is_floating and is_down

    def push(self, velocity_mps: F64) -> None:
        """Adds a velocity to the floating base at once, as a shove does.

        Args:
            velocity_mps: World frame. Shape (3,).

        Raises:
            InterlockError: `base-fixed`.
        """
        if not self._robot.is_floating:
            raise InterlockError(code="base-fixed", where="push", expected="a floating base", got="a fixed one")
        dof = self._robot.base_dof
        self._data.qvel[dof : dof + 3] += velocity_mps
        mujoco.mj_comVel(self._robot.model, self._data)

    def _imu_twist(self) -> F64:
        robot = self._robot
        is_site = robot.imu is not None
        kind = mujoco.mjtObj.mjOBJ_SITE if is_site else mujoco.mjtObj.mjOBJ_XBODY
        index = robot.imu if is_site else robot.root
        mujoco.mj_objectVelocity(robot.model, self._data, kind, index, self._twist, 1)
        return self._twist
