"""The four pairs of files say what is known about the policies and what the robots' models say."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interlock.contract.rows import expand_rows
from interlock.contract.text import load_contract, load_robot
from interlock.errors import Problem

HERE = Path(__file__).parent
POLICIES = Path(os.environ.get("INTERLOCK_POLICIES", HERE.parents[1] / "../shared/policies"))
NAMES = ("pg_go1", "url_g1", "hs_g1_ppo", "hs_g1_fastsac")

# Terms of facts.json in our words: term, of, parts.
WORDS = {
    "command": ("goal", "velocity", ("lin_vel_x", "lin_vel_y", "ang_vel_z")),
    "command_lin": ("goal", "velocity", ("lin_vel_x", "lin_vel_y")),
    "command_ang": ("goal", "velocity", ("ang_vel_z",)),
    "phase_cos": ("phase", "cos", None),
    "phase_sin": ("phase", "sin", None),
}


def facts_of(name: str) -> dict[str, Any]:
    path = POLICIES / name / "facts.json"
    if not path.is_file():
        pytest.skip(f"{path} is absent: set INTERLOCK_POLICIES to the folder of shared policies")
    facts: dict[str, Any] = json.loads(path.read_text())
    return facts


def contract_of(name: str) -> Any:
    return load_contract((HERE / name / "contract.yaml").read_text())


def robot_of(name: str) -> Any:
    return load_robot((HERE / name / "robot.yaml").read_text())


def rows_of(joints: Any) -> list[Any]:
    """One row per joint, in the order of the file."""
    problems: list[Problem] = []
    rows = expand_rows(joints.each, joints.order, str, problems)
    assert not problems
    return [rows[joint] for joint in joints.order]


@pytest.mark.parametrize("name", NAMES)
def test_joints_gains_and_default_pose_are_the_known_ones(name: str) -> None:
    facts, joints = facts_of(name), contract_of(name).joints
    assert [joint + joints.name_suffix for joint in joints.order] == facts["joints_policy_order"]
    rows = rows_of(joints)
    assert [row.default for row in rows] == facts["default_joint_pos"]
    assert [row.kp for row in rows] == facts["kp"]
    assert [row.kd for row in rows] == facts.get("kd", facts.get("kd_joint_damping"))


@pytest.mark.parametrize("name", NAMES)
def test_the_network_sees_the_known_terms(name: str) -> None:
    facts, contract = facts_of(name), contract_of(name)
    assert list(contract.inputs) == [facts["input"]]
    observed = contract.inputs[facts["input"]]
    for term, known in zip(observed.terms, facts["obs"], strict=True):
        word, of, parts = WORDS.get(known["term"], (known["term"], None, None))
        assert (term.term, term.scale, term.offset) == (word, known["scale"], 0)
        assert of is None or term.of == of
        assert parts is None or term.parts == parts
        steps = 1 if observed.history == "none" else observed.history.steps
        assert steps == known.get("history", 1)
        if word == "phase":
            assert (term.freq_hz, list(term.init_rad)) == (facts["phase"]["freq_hz"], facts["phase"]["init"])


@pytest.mark.parametrize("name", NAMES)
def test_actions_rate_and_goals_are_the_known_ones(name: str) -> None:
    facts, contract = facts_of(name), contract_of(name)
    assert list(contract.outputs) == [facts["output"]]
    action = contract.outputs[facts["output"]]
    np.testing.assert_array_equal(np.broadcast_to(action.scale, len(facts["kp"])), facts["action"]["scale"])
    assert action.offset == "default"
    assert action.clip == ("none" if "clip" not in facts["action"] else tuple(facts["action"]["clip"]))
    assert float(contract.timing.period_s) == facts["control_dt"]
    known = facts.get("command_range")
    if known is not None:
        goal = contract.goals.velocity
        assert list(goal.lin_vel_x.range) == known["lin_vel_x"]
        assert list(goal.lin_vel_y.range) == known["lin_vel_y"]
        assert list(goal.ang_vel_z.range) == known.get("ang_vel_z", known.get("ang_vel_yaw"))


@pytest.mark.parametrize("name", NAMES)
def test_the_robot_file_never_allows_more_than_the_model(name: str) -> None:
    mujoco = pytest.importorskip("mujoco", reason="needs the extra `sim`")
    facts, robot = facts_of(name), robot_of(name)
    model = mujoco.MjModel.from_xml_path(str(POLICIES / name / robot.sim.mjcf))
    assert robot.sim.step_ms == facts["physics_dt"] * 1e3
    assert robot.base == "floating"
    assert model.site(robot.sensors.imu.at).id >= 0
    assert robot.sim.keyframe is None or model.key(robot.sim.keyframe).id == facts["init_keyframe"]
    assert robot.sim.base_height_m == facts.get("init_base_z")
    for joint, row in zip(robot.joints.order, rows_of(robot.joints), strict=True):
        hinge = model.joint(joint + robot.joints.name_suffix)
        actuator = int(np.flatnonzero(model.actuator_trnid[:, 0] == hinge.id)[0])
        bounds = [model.jnt_actfrcrange[hinge.id], model.actuator_forcerange[actuator]]
        np.testing.assert_allclose(row.pos, hinge.range, rtol=0, atol=1e-9)
        assert row.torque <= max(bound[1] for bound in bounds)


def test_the_two_reference_walkers_have_one_contract() -> None:
    one, other = contract_of("hs_g1_ppo"), contract_of("hs_g1_fastsac")
    assert one.name != other.name
    assert one.model_copy(update={"name": other.name}) == other
