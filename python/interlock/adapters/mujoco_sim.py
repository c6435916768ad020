"""A robot file's `sim:` block turned into a plant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from interlock.adapters.mujoco_plant import MujocoPlant
from interlock.adapters.mujoco_start import Start
from interlock.errors import InterlockError


def mujoco_sim(robot: dict[str, Any], plan: dict[str, Any], folder: Path) -> MujocoPlant:
    """Builds the plant of a robot file.

    Args:
        robot: Expanded robot file; `sim` names the model, the physics step and where the base starts.
        plan: The plan; its start pose is where the joints start, its gains must be ones that the drives can have.
        folder: Where `sim.mjcf` starts.

    Raises:
        InterlockError: `sim-model` when the file is absent or outside the folder; see `MujocoPlant`.
    """
    sim = robot["sim"]
    path = (folder / str(sim["mjcf"])).resolve()
    if not path.is_file():
        raise InterlockError(
            code="sim-model",
            where="robot.yaml sim.mjcf",
            expected=f"a file in {folder}",
            got=str(sim["mjcf"]),
            hint="put the model beside the robot file",
        )
    step_ms = sim.get("step_ms")
    start = Start(
        keyframe=sim.get("keyframe"),
        joints_rad=np.asarray(plan["start"]["pose"], dtype=np.float64),
        base_height_m=sim.get("base_height_m"),
    )
    plant = MujocoPlant(
        path,
        plan["joints"]["names"],
        period_ns=int(plan["timing"]["tick_ns"]),
        step_ns=None if step_ms is None else round(float(step_ms) * 1e6),
        start=start,
        imu_site=sim.get("imu_site"),
    )
    command = plan["command"]
    if command["kind"] == "position_pd" and not command["host_pd"]:
        plant.check_gains(np.asarray(command["kp"]), np.asarray(command["kd"]))
    return plant
