"""The drives of a simulated robot: what acts on the joints between two commands."""

import mujoco
import numpy as np

from interlock.errors import InterlockError
from interlock.ports.driver import Command, CommandKind

from .mujoco_model import F64, RobotModel

BEHAVIOURS = ("damp", "hold", "keep_last_target", "limp")
GAIN_TOLERANCE = 1e-6  # relative; gains travel as decimal text

_ACCEPTED = {
    "motor": (CommandKind.POSITION_PD, CommandKind.TORQUE, CommandKind.OFF),
    "position": (CommandKind.POSITION, CommandKind.POSITION_PD, CommandKind.OFF),
}


class Drives:
    """Executes the last command at the physics rate, as the drives of a robot do.

    Torque motors run `kp*(target - q) + kd*(velocity - dq) + torque`. Position servos run inside the model
    with the model's own gains, which a command must repeat, and take no torque. `kp` zero on every joint is
    damping and always possible. The model clips torques to its control, force and joint force ranges.
    """

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        self._gain = robot.model.actuator_gainprm[robot.actuator].copy()
        self._bias = robot.model.actuator_biasprm[robot.actuator].copy()
        n = robot.actuator.size
        self._zeros = np.zeros(n)
        self._target, self._velocity, self._torque = np.zeros(n), np.zeros(n), np.zeros(n)
        self._kp, self._kd = np.zeros(n), np.zeros(n)
        self._held_kp, self._held_kd = np.zeros(n), np.zeros(n)

    def rest(self, position: F64) -> None:
        """Forgets every command: motors are limp, position servos hold `position` (rad, shape (n,))."""
        self._held_kp[:], self._held_kd[:] = self._robot.kp, self._robot.kd
        self.alone("hold" if self._robot.servo == "position" else "limp", None, position)

    def check_gains(self, kp: F64, kd: F64) -> None:
        """Refuses gains that a `POSITION_PD` command could not have.

        Args:
            kp: N*m/rad. Shape (n,).
            kd: N*m*s/rad. Shape (n,).

        Raises:
            InterlockError: `gains-not-the-models`: position servos have gains of their own.
        """
        if self._robot.servo == "motor" or not kp.any():
            return
        for name, given, own in (("kp", kp, self._robot.kp), ("kd", kd, self._robot.kd)):
            if not np.allclose(given, own, rtol=GAIN_TOLERANCE, atol=0.0):
                worst = int(np.argmax(np.abs(given - own)))
                raise InterlockError(
                    code="gains-not-the-models",
                    where=f"{name} of joint {self._robot.joints[worst]}",
                    expected=f"{own[worst]:g}, the gain of the model's position actuator",
                    got=f"{given[worst]:g}",
                    hint="the contract's gains and those of the simulated robot must be the same",
                )

    def command(self, command: Command) -> None:
        """Takes a new command, in SI units.

        Raises:
            InterlockError: `command-not-finite`; `command-kind` for one that the actuators cannot do;
                `gains-not-the-models`.
        """
        servo, kind, zeros = self._robot.servo, command.kind, self._zeros
        with_torque = servo == "position" and kind is CommandKind.POSITION_PD and command.torque.any()
        if kind not in _ACCEPTED[servo] or with_torque:
            accepted = ", ".join(each.name.lower() for each in _ACCEPTED[servo])
            raise InterlockError(
                code="command-kind",
                where="command",
                expected=accepted + (" without torque" if servo == "position" else ""),
                got=CommandKind(kind).name.lower() + (" with torque" if with_torque else ""),
                hint=f"the model has {servo} actuators; see `joints.accepts` of the robot file",
            )
        if kind is CommandKind.POSITION:
            self._set(command.target, zeros, zeros, self._robot.kp, self._robot.kd)
        elif kind is CommandKind.POSITION_PD:
            self.check_gains(command.kp, command.kd)
            self._set(command.target, command.velocity, command.torque, command.kp, command.kd)
        elif kind is CommandKind.TORQUE:
            self._set(zeros, zeros, command.torque, zeros, zeros)
        else:
            self.alone("limp", None, zeros)

    def alone(self, behaviour: str, kd: F64 | None, position: F64) -> None:
        """What the drives do by themselves from now on, until the next command.

        Args:
            behaviour: One of `BEHAVIOURS`; `keep_last_target` changes nothing.
            kd: N*m*s/rad of `damp`. Shape (n,).
            position: rad, where `hold` holds, with the gains last used. Shape (n,).

        Raises:
            InterlockError: `behaviour-unknown`; `behaviour-incomplete` for `damp` without `kd` and for `hold`
                before any command gave it gains.
        """
        zeros = self._zeros
        if behaviour == "limp":
            self._set(zeros, zeros, zeros, zeros, zeros)
        elif behaviour == "damp" and kd is not None:
            self._set(zeros, zeros, zeros, zeros, kd)
        elif behaviour == "hold" and self._held_kp.any():
            self._set(position, zeros, zeros, self._held_kp, self._held_kd)
        elif behaviour != "keep_last_target":
            is_known = behaviour in BEHAVIOURS
            needs = {"damp": "its kd", "hold": "gains from an earlier command"}
            raise InterlockError(
                code="behaviour-incomplete" if is_known else "behaviour-unknown",
                where=f"drives {behaviour}",
                expected=needs.get(behaviour, f"one of {', '.join(BEHAVIOURS)}"),
                got="none" if is_known else behaviour,
                hint="see `safe.supervisor_lost` of the robot file",
            )

    def act(self, data: mujoco.MjData) -> None:
        """Writes the controls of the next physics step from the joints' present position and velocity."""
        robot = self._robot
        if robot.servo == "position":
            data.ctrl[robot.actuator] = self._target
            return
        error = self._target - data.qpos[robot.qpos]
        torque = self._kp * error + self._kd * (self._velocity - data.qvel[robot.dof]) + self._torque
        data.ctrl[robot.actuator] = torque * robot.ctrl_per_torque

    def _set(self, target: F64, velocity: F64, torque: F64, kp: F64, kd: F64) -> None:
        if not all(np.isfinite(values).all() for values in (target, velocity, torque, kp, kd)):
            raise InterlockError(
                code="command-not-finite",
                where="command",
                expected="finite numbers",
                got="NaN or infinity",
                hint="nothing may reach a drive without passing the guard",
            )
        self._target[:], self._velocity[:], self._torque[:] = target, velocity, torque
        self._kp[:], self._kd[:] = kp, kd
        if kp.any():
            self._held_kp[:], self._held_kd[:] = kp, kd
        if self._robot.servo == "position":
            self._power_servos(kp, kd)

    def _power_servos(self, kp: F64, kd: F64) -> None:
        model, actuator = self._robot.model, self._robot.actuator
        model.actuator_gainprm[actuator] = self._gain
        model.actuator_biasprm[actuator] = self._bias
        if not kp.any():
            model.actuator_gainprm[actuator, 0] = 0.0
            model.actuator_biasprm[actuator, 1] = 0.0
            model.actuator_biasprm[actuator, 2] = -kd
