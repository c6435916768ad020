"""A robot's MJCF file, read for a plant: joints found by name, actuators classified, sites resolved."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from interlock.errors import InterlockError

F64 = NDArray[np.float64]
Ints = NDArray[np.intp]
Servo = Literal["motor", "position"]

IMU_SITES = ("imu", "imu_in_pelvis")  # tried in this order where the robot file names none
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RobotModel:
    """A compiled MJCF with the places of a robot's joints in it.

    Attributes:
        joints: Full joint names, robot order.
        model: The compiled model; its timestep is the physics period.
        steps: Physics steps per servo period.
        servo: What the actuators are: torque motors, or position servos with gains of their own.
        qpos: Place of each joint in `qpos`, robot order. Shape (n,).
        dof: Place of each joint in `qvel`. Shape (n,).
        actuator: Actuator of each joint. Shape (n,).
        kp: N*m/rad of position servos; zeros for motors. Shape (n,).
        kd: N*m*s/rad of position servos, passive joint damping included; zeros for motors. Shape (n,).
        ctrl_per_torque: Control value per N*m of a motor; ones for position servos. Shape (n,).
        root: Body that floats, or the first body of a fixed base.
        is_floating: Whether a free joint carries the robot.
        base_qpos: Place of the base's 3 + 4 positions in `qpos`; 0 for a fixed base.
        base_dof: Place of its 3 + 3 velocities in `qvel`.
        imu: Site whose frame the base measurements use; None for the root body's own.
    """

    joints: tuple[str, ...]
    model: mujoco.MjModel
    steps: int
    servo: Servo
    qpos: Ints
    dof: Ints
    actuator: Ints
    kp: F64
    kd: F64
    ctrl_per_torque: F64
    root: int
    is_floating: bool
    base_qpos: int
    base_dof: int
    imu: int | None


def load(
    mjcf: Path,
    joints: Sequence[str],
    *,
    period_ns: int,
    step_ns: int | None = None,
    imu_site: str | None = None,
) -> RobotModel:
    """Compiles an MJCF file and finds the robot in it by name.

    Args:
        mjcf: The file.
        joints: Full joint names in robot order; each must be a hinge that exactly one actuator drives.
        period_ns: Servo period; a whole multiple of the physics period.
        step_ns: Physics period; the model's own timestep where absent.
        imu_site: Site that carries the IMU; absent: `imu`, `imu_in_pelvis`, else the root body.

    Raises:
        InterlockError: `mjcf-unreadable`, `joint-unknown`, `joint-kind`, `actuator-missing`,
            `actuator-extra`, `actuator-kind`, `period-not-a-multiple`, `site-unknown`.
    """
    try:
        model = mujoco.MjModel.from_xml_path(str(mjcf))
    except (ValueError, OSError) as error:
        raise InterlockError(
            code="mjcf-unreadable",
            where=mjcf.name,
            expected="a MuJoCo model",
            got=str(error).strip(),
            hint="point `sim.mjcf` of the robot file at a complete MJCF file",
        ) from error
    if step_ns is not None:
        model.opt.timestep = step_ns / NS_PER_S
    steps = _steps_per_period(model, period_ns)
    # An unstable state must be seen, not replaced by a robot that stands again.
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)

    joint_ids = [_hinge(model, name, mjcf) for name in joints]
    actuators = _actuators(model, joint_ids, joints)
    servo = _servo(model, actuators, joints)
    free = np.flatnonzero(model.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE))
    dof = np.asarray(model.jnt_dofadr[joint_ids], dtype=np.intp)
    gain = np.asarray(model.actuator_gainprm[actuators, 0], dtype=np.float64)
    zeros = np.zeros(len(joints))
    return RobotModel(
        joints=tuple(joints),
        model=model,
        steps=steps,
        servo=servo,
        qpos=np.asarray(model.jnt_qposadr[joint_ids], dtype=np.intp),
        dof=dof,
        actuator=actuators,
        kp=gain if servo == "position" else zeros,
        kd=-model.actuator_biasprm[actuators, 2] + model.dof_damping[dof] if servo == "position" else zeros,
        ctrl_per_torque=1.0 / (gain * model.actuator_gear[actuators, 0]) if servo == "motor" else np.ones(len(joints)),
        root=int(model.jnt_bodyid[free[0]]) if free.size else min(1, model.nbody - 1),
        is_floating=bool(free.size),
        base_qpos=int(model.jnt_qposadr[free[0]]) if free.size else 0,
        base_dof=int(model.jnt_dofadr[free[0]]) if free.size else 0,
        imu=_imu(model, imu_site),
    )


def _steps_per_period(model: mujoco.MjModel, period_ns: int) -> int:
    step_ns = round(float(model.opt.timestep) * NS_PER_S)
    if step_ns <= 0 or period_ns <= 0 or period_ns % step_ns:
        raise InterlockError(
            code="period-not-a-multiple",
            where="driver.period",
            expected=f"a whole multiple of the physics step of {step_ns / 1e6:g} ms",
            got=f"{period_ns / 1e6:g} ms",
            hint="set `sim.step_ms` of the robot file to a divisor of the servo period",
        )
    return period_ns // step_ns


def _names(model: mujoco.MjModel, kind: mujoco.mjtObj, count: int) -> list[str]:
    return [mujoco.mj_id2name(model, kind, i) or "" for i in range(count)]


def _hinge(model: mujoco.MjModel, name: str, mjcf: Path) -> int:
    hinge = int(mujoco.mjtJoint.mjJNT_HINGE)
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
    if index < 0:
        names = _names(model, mujoco.mjtObj.mjOBJ_JOINT, model.njnt)
        known = [other for i, other in enumerate(names) if model.jnt_type[i] == hinge]
        raise InterlockError(
            code="joint-unknown",
            where=f"{mjcf.name}: joint {name}",
            expected=f"one of the {len(known)} hinges: {', '.join(known)}",
            got="a name that the model does not have",
            hint="check `joints.order` and `joints.name_suffix` of the robot file",
        )
    if model.jnt_type[index] != hinge:
        raise InterlockError(
            code="joint-kind",
            where=f"{mjcf.name}: joint {name}",
            expected="a hinge",
            got=mujoco.mjtJoint(int(model.jnt_type[index])).name.removeprefix("mjJNT_").lower(),
            hint="a plant drives hinges only; leave other joints out of `joints.order`",
        )
    return int(index)


def _actuators(model: mujoco.MjModel, joint_ids: Sequence[int], joints: Sequence[str]) -> Ints:
    on_joint = model.actuator_trntype == int(mujoco.mjtTrn.mjTRN_JOINT)
    found = [np.flatnonzero(on_joint & (model.actuator_trnid[:, 0] == joint)) for joint in joint_ids]
    for name, actuators in zip(joints, found, strict=True):
        if actuators.size != 1:
            raise InterlockError(
                code="actuator-missing",
                where=f"joint {name}",
                expected="exactly one actuator in the model",
                got=str(actuators.size),
                hint="give every joint of the robot file one motor or position actuator",
            )
    driven = np.concatenate(found) if found else np.zeros(0, dtype=np.intp)
    extra = sorted(set(range(model.nu)) - set(driven.tolist()))
    if extra:
        names = _names(model, mujoco.mjtObj.mjOBJ_ACTUATOR, model.nu)
        raise InterlockError(
            code="actuator-extra",
            where="actuators of the model",
            expected="only those of the joints in the robot file",
            got=", ".join(names[i] or f"#{i}" for i in extra),
            hint="name their joints in `joints.order`, or remove them: nothing may hang limp unnoticed",
        )
    return driven.astype(np.intp)


def _servo(model: mujoco.MjModel, actuators: Ints, joints: Sequence[str]) -> Servo:
    kinds = {name: _kind(model, int(i)) for name, i in zip(joints, actuators, strict=True)}
    first = next(iter(kinds.values()), None)
    for name, kind in kinds.items():
        if kind is None or kind != first:
            raise InterlockError(
                code="actuator-kind",
                where=f"actuator of joint {name}",
                expected="torque motors, or position servos (affine bias -kp*q - kv*dq), all alike",
                got="another kind" if kind is None else f"{kind} beside {first}",
                hint="use <motor> or <position> for every joint",
            )
    return first or "motor"


def _kind(model: mujoco.MjModel, actuator: int) -> Servo | None:
    gain, bias = model.actuator_gainprm[actuator], model.actuator_biasprm[actuator]
    plain = (
        model.actuator_dyntype[actuator] == int(mujoco.mjtDyn.mjDYN_NONE)
        and model.actuator_gaintype[actuator] == int(mujoco.mjtGain.mjGAIN_FIXED)
        and gain[0] != 0.0
    )
    if plain and model.actuator_biastype[actuator] == int(mujoco.mjtBias.mjBIAS_NONE):
        return "motor"
    affine = plain and model.actuator_biastype[actuator] == int(mujoco.mjtBias.mjBIAS_AFFINE)
    if affine and bias[0] == 0.0 and bias[1] == -gain[0] and model.actuator_gear[actuator, 0] == 1.0:
        return "position"
    return None


def _imu(model: mujoco.MjModel, name: str | None) -> int | None:
    for candidate in IMU_SITES if name is None else (name,):
        index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, candidate)
        if index >= 0:
            return int(index)
    if name is None:
        return None
    raise InterlockError(
        code="site-unknown",
        where=f"site {name}",
        expected=f"one of {', '.join(_names(model, mujoco.mjtObj.mjOBJ_SITE, model.nsite)) or 'no sites'}",
        got="a name that the model does not have",
        hint="check `sensors.imu.at` of the robot file",
    )
