"""The four ONNX walkers, each in a plain loop of a dozen lines on its own simulated robot: the plant is faithful.

Nothing of the product's own stages runs here. What the policies need was read out of their `facts.json`.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("mujoco", reason="needs the extra `sim`")

import onnxruntime

from interlock.adapters.mujoco_plant import MujocoPlant
from interlock.adapters.mujoco_start import Start
from interlock.ports.driver import Command, CommandKind, State

F64 = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[2]
POLICIES = Path(os.environ.get("INTERLOCK_POLICIES", ROOT / "../shared/policies"))

# Body-frame forward speed at the test goal, and the share of it that may be missing or too much.
SPEED_MPS = {"pg_go1": 1.02, "url_g1": 0.48, "hs_g1_ppo": 0.39, "hs_g1_fastsac": 0.42}
TOLERANCE = 0.05
DURATION_S = 10.0
ONSET_S = 2.0  # from standing to the first full gait cycles; a mean that includes it is 2 to 5 % lower


class Walker:
    """Observation, network and PD command of one policy, written as plainly as possible."""

    def __init__(self, name: str) -> None:
        folder = POLICIES / name
        if not (folder / "facts.json").is_file():
            pytest.skip(f"{folder} is absent: set INTERLOCK_POLICIES to the folder of shared policies")
        self.facts: dict[str, Any] = json.loads((folder / "facts.json").read_text())
        self.joints = tuple(self.facts["joints_policy_order"])
        self.default = np.array(self.facts["default_joint_pos"], dtype=np.float64)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(folder / self.facts["policy"], options)
        self.goal = np.array(self.facts["test_command"], dtype=np.float64)
        self.action = np.zeros(len(self.joints))
        self.periods = 0
        self.history: dict[str, list[F64]] = {}

    def plant(self, period_ns: int) -> MujocoPlant:
        keyframes = {0: "home"}
        start = (
            Start(keyframe=keyframes[self.facts["init_keyframe"]])
            if "init_keyframe" in self.facts
            else Start(joints_rad=self.default, base_height_m=self.facts["init_base_z"])
        )
        return MujocoPlant(
            POLICIES / self.facts["name"] / "model.xml",
            self.joints,
            period_ns=period_ns,
            step_ns=round(self.facts["physics_dt"] * 1e9),
            start=start,
        )

    def observe(self, state: State) -> NDArray[np.float32]:
        w, x, y, z = state.quat_wxyz
        phase = self.facts["phase"] or {"freq_hz": 0.0, "init": 0.0}
        turn = 2 * np.pi * phase["freq_hz"] * self.facts["control_dt"] * self.periods
        terms: dict[str, F64] = {
            "base_lin_vel": state.lin_vel,
            "base_ang_vel": state.ang_vel,
            "projected_gravity": np.array([2 * (w * y - x * z), -2 * (w * x + y * z), 2 * (x * x + y * y) - 1]),
            "joint_pos_rel": state.pos - self.default,
            "joint_vel": state.vel,
            "last_action": self.action,
            "command": self.goal,
            "command_lin": self.goal[:2],
            "command_ang": self.goal[2:],
            "phase_cos": np.cos(np.array(phase["init"]) + turn),
            "phase_sin": np.sin(np.array(phase["init"]) + turn),
        }
        parts = []
        for row in self.facts["obs"]:
            value = terms[row["term"]] * row["scale"]
            steps = self.history.setdefault(row["term"], [value] * row.get("history", 1))
            steps[:] = [*steps[1:], value.copy()]
            parts += steps
        return np.concatenate(parts).astype(np.float32)[None]

    def command(self, state: State) -> Command:
        outputs = self.session.run(None, {self.facts["input"]: self.observe(state)})
        self.action = np.asarray(outputs[0], dtype=np.float64)[0]
        self.periods += 1
        zeros = np.zeros(len(self.joints))
        return Command(
            kind=CommandKind.POSITION_PD,
            running=True,
            target=self.default + np.array(self.facts["action"]["scale"]) * self.action,
            velocity=zeros,
            torque=zeros,
            kp=np.array(self.facts["kp"]),
            kd=np.array(self.facts["kd"] if "kd" in self.facts else self.facts["kd_joint_damping"]),
        )


def walk(walker: Walker, plant: MujocoPlant) -> tuple[F64, bool]:
    """Forward speed of every control period, and whether the robot fell."""
    per_action = round(walker.facts["control_dt"] * 1e9) // plant.period_ns
    state, speeds, fell = State(len(walker.joints)), [], False
    for _ in range(round(DURATION_S / walker.facts["control_dt"])):
        plant.read(state)
        plant.step(walker.command(state))
        for _ in range(per_action - 1):
            plant.step(None)
        speeds.append(plant.outcome().forward_mps)
        fell |= plant.outcome().fallen
    return np.array(speeds), fell


@pytest.mark.parametrize("name", SPEED_MPS)
def test_a_walker_walks_at_its_goal(name: str) -> None:
    walker = Walker(name)
    plant = walker.plant(round(walker.facts["physics_dt"] * 1e9))
    speeds, fell = walk(walker, plant)
    assert not fell
    settled = speeds[round(ONSET_S / walker.facts["control_dt"]) :].mean()
    assert settled == pytest.approx(SPEED_MPS[name], rel=TOLERANCE)


def test_the_servo_period_does_not_change_the_physics() -> None:
    speeds = []
    for period_ns in (2_000_000, 20_000_000):
        walker = Walker("url_g1")
        speeds.append(walk(walker, walker.plant(period_ns))[0])
    np.testing.assert_array_equal(speeds[0], speeds[1])


def test_a_walker_stands_at_a_zero_goal_and_after_a_push() -> None:
    walker = Walker("pg_go1")
    walker.goal[:] = 0.0
    plant = walker.plant(4_000_000)
    plant.push(np.array([0.3, 0.3, 0.0]))
    speeds, fell = walk(walker, plant)
    assert not fell
    assert abs(speeds[-50:].mean()) < 0.05


def test_a_robot_whose_drives_go_limp_falls() -> None:
    walker = Walker("url_g1")
    plant = walker.plant(20_000_000)
    plant.drives("limp")
    for _ in range(100):
        plant.step(None)
    assert plant.is_fallen()


def test_a_default_pose_in_degrees_collapses_flat_and_counts_as_a_fall() -> None:
    walker = Walker("pg_go1")
    plant = walker.plant(4_000_000)
    walker.default = np.rad2deg(walker.default)
    _, fell = walk(walker, plant)
    state = State(len(walker.joints))
    plant.read(state)
    assert fell
    assert abs(state.quat_wxyz[0] ** 2 + state.quat_wxyz[3] ** 2) > 0.95  # it lies level


def test_position_actuators_refuse_gains_that_are_not_theirs() -> None:
    walker = Walker("pg_go1")
    walker.facts["kp"] = [36.0] * len(walker.joints)
    plant, state = walker.plant(4_000_000), State(len(walker.joints))
    plant.read(state)
    with pytest.raises(Exception, match="the gain of the model's position actuator"):
        plant.step(walker.command(state))
