"""Where a simulated robot starts."""

from dataclasses import dataclass

import mujoco
import numpy as np

from interlock.errors import InterlockError

from .mujoco_model import F64, RobotModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Start:
    """The state that a reset brings back. What is absent comes from the keyframe, else from the model.

    Attributes:
        keyframe: Keyframe of the model.
        joints_rad: Joint positions, robot order. Shape (n,).
        base_height_m: Height of a floating base.
        noise_rad: Half width of the uniform noise that a seed adds to the joints.
    """

    keyframe: str | None = None
    joints_rad: F64 | None = None
    base_height_m: float | None = None
    noise_rad: float = 0.0

    def qpos(self, robot: RobotModel) -> F64:
        """Positions of the whole model, without noise. Shape (nq,).

        Raises:
            InterlockError: `start-unknown`.
        """
        model = robot.model
        qpos = np.array(model.qpos0)
        if self.keyframe is not None:
            index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, self.keyframe)
            if index < 0:
                names = ", ".join(model.key(i).name for i in range(model.nkey))
                raise _unknown("keyframe", expected=f"one of {names or 'no keyframes'}", got=self.keyframe)
            qpos = np.array(model.key_qpos[index])
        if self.joints_rad is not None:
            if self.joints_rad.shape != robot.qpos.shape:
                shape = self.joints_rad.shape
                raise _unknown("start pose", expected=f"shape {robot.qpos.shape}", got=f"shape {shape}")
            qpos[robot.qpos] = self.joints_rad
        if self.base_height_m is not None:
            if not robot.is_floating:
                raise _unknown("base height", expected="a floating base", got="a fixed one")
            qpos[robot.base_qpos + 2] = self.base_height_m
        return qpos


def _unknown(where: str, *, expected: str, got: str) -> InterlockError:
    return InterlockError(
        code="start-unknown", where=where, expected=expected, got=got, hint="see `sim` of the robot file"
    )
