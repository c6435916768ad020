"""Which adapter answers to which name. The only place that knows them all."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.errors import InterlockError
from interlock.ports.driver import Driver
from interlock.ports.plant import Plant
from interlock.runtime.bound import Bound

PLANT_LOG = "INTERLOCK_PLANT_LOG"  # a file for what the simulated plant did, also after its supervisor died
SIM_EXTRA = "pip install 'interlock[sim]'"


def simulated_driver(robot: dict[str, Any]) -> str:
    """The simulation that stands for a robot. Raises `InterlockError` when its file names no model."""
    use = str(robot["driver"]["use"])
    if use.startswith("sim:"):
        return use
    if robot.get("sim"):
        return "sim:mujoco"
    raise InterlockError(
        code="no-simulation",
        where="robot.yaml sim",
        expected="a model: `sim: {mjcf: model.xml}`",
        got="none",
        hint="without a model there is no simulated run; --dry reads the real robot and sends nothing",
    )


def make_plant(name: str, bound: Bound) -> Plant:
    """A simulated robot by driver name."""
    _require_mujoco()
    if name == "sim:arm":
        from interlock.adapters.arm.sim import ArmSim

        return ArmSim()
    if name == "sim:mujoco":
        from interlock.adapters.mujoco_sim import mujoco_sim

        return mujoco_sim(bound.robot, bound.plan, bound.robot_folder)
    raise _unknown(name)


def make_driver(configuration: dict[str, Any]) -> Driver:
    """The driver that a child process hosts, from its configuration."""
    name = str(configuration["driver"])
    options = dict(configuration["driver_options"])
    robot, plan = configuration["robot"], configuration["plan"]
    folder = Path(configuration["robot_folder"])
    if not name.startswith("sim:"):
        return _user_driver(name, robot, options)
    _require_mujoco()
    from interlock.adapters.sim_driver import SimDriver

    bound = Bound(name="", plan=plan, graph=b"", library=Path(), tokenizer=None, robot=robot, robot_folder=folder)
    plant = make_plant(name, bound)
    plant.reset(int(options.get("seed", 0)), options.get("task"))
    lost = robot["safe"]["supervisor_lost"]
    log = options.get("log") or os.environ.get(PLANT_LOG)
    return SimDriver(
        plant,
        joints=len(plan["joints"]["names"]),
        camera_periods_ns=[int(each["period_ns"]) for each in plan["cameras"]],
        command_timeout_ns=int(plan["safe"]["command_timeout_ns"]),
        drives_then=str(lost["drives_then"]),
        drives_kd=_damping(lost),
        log=None if log is None else Path(log),
    )


def _damping(lost: dict[str, Any]) -> NDArray[np.float64] | None:
    kd = lost.get("kd")
    if kd is None and lost["drives_then"] == "damp":
        raise InterlockError(
            code="damp-gain-missing",
            where="robot.yaml safe.supervisor_lost",
            expected="`kd` here or in `policy_lost`",
            got="none",
            hint="a simulation has to know how strongly the drives damp by themselves",
        )
    return None if kd is None else np.asarray(kd, dtype=np.float64)


def _user_driver(name: str, robot: dict[str, Any], options: dict[str, Any]) -> Driver:
    module_name, _, class_name = name.partition(":")
    try:
        made: Driver = getattr(import_module(module_name), class_name)(robot=robot, **options)
    except (ImportError, AttributeError, TypeError, ValueError) as cause:
        raise InterlockError(
            code="driver-unknown",
            where=f"robot.yaml driver.use {name!r}",
            expected="sim:arm, sim:mujoco or an importable package.module:Class",
            got=str(cause),
            hint="a driver is a class with connect, read, images, write, stop, close",
        ) from None
    return made


def _unknown(name: str) -> InterlockError:
    return InterlockError(code="driver-unknown", where=f"driver {name!r}", expected="sim:arm or sim:mujoco", got=name)


def _require_mujoco() -> None:
    try:
        import_module("mujoco")
    except ImportError:
        raise InterlockError(
            code="sim-missing",
            where="mujoco",
            expected="the simulator",
            got="not installed",
            hint="simulated robots need the extra `sim`",
            next=SIM_EXTRA,
        ) from None
