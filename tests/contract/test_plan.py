"""The plan is what the core reads: by name, in SI, in robot order, and the core agrees that it is whole."""

import json
import math
import re

import numpy as np
import pytest
from documents import PAIRS, arm_contract, arm_robot, g1_contract, g1_robot, so101_contract, so101_robot, wrong

from interlock.contract.bind import bind
from interlock.contract.text import load_contract, load_robot
from interlock.errors import InterlockError

core = pytest.importorskip("interlock._core", reason="the extension is not built")
NS = 1_000_000


def plan_of(contract, robot):
    return bind(load_contract(contract), load_robot(robot)).plan()


@pytest.mark.parametrize("pair", PAIRS)
def test_the_core_accepts_the_plan(pair):
    contract, robot = PAIRS[pair]
    core.check_plan(json.dumps(plan_of(contract(), robot())))


@pytest.mark.parametrize("name", ["pg_go1", "url_g1", "hs_g1_ppo", "hs_g1_fastsac"])
def test_the_core_accepts_the_plans_of_real_walkers(name, request):
    folder = request.config.rootpath / "tests" / "policies" / name
    plan = plan_of((folder / "contract.yaml").read_text("utf-8"), (folder / "robot.yaml").read_text("utf-8"))
    core.check_plan(json.dumps(plan))
    assert plan["timing"]["synchronous"] is True
    assert plan["safe"]["floating_base"] is True


def test_joints_are_mapped_by_name():
    plan = plan_of(g1_contract(), g1_robot())
    joints = plan["joints"]
    policy = [joints["names"][index] for index in joints["policy_from_robot"]]
    assert policy == [f"{name}_joint" for name in load_contract(g1_contract()).joints.order]
    knee = joints["names"].index("left_knee_joint")
    assert plan["command"]["kp"][knee] == 150
    assert joints["default_pos"][knee] == 0.3
    assert plan["limits"]["torque"][knee] == {"limit": 139.0, "refuse_beyond": 556.0}
    assert plan["safe"]["policy_lost"]["kd"][knee] == 5


def test_renaming_the_order_of_the_network_moves_nothing_but_the_map():
    swapped = wrong(g1_contract(), ("left_knee, right_knee", "right_knee, left_knee"))
    one, other = plan_of(g1_contract(), g1_robot()), plan_of(swapped, g1_robot())
    assert one["joints"]["policy_from_robot"] != other["joints"]["policy_from_robot"]
    for key in ("command", "limits", "safe", "start"):
        assert one[key] == other[key]


def in_degrees(text):
    """The arm's contract with every number of the joints in degrees."""
    degrees = lambda match: f"{match[1]}: {math.degrees(float(match[2]))!r}"  # noqa: E731
    rows = [
        re.sub(r"(mean|std): (-?[0-9.]+)", degrees, row) if "action: {" in row else row for row in text.splitlines()
    ]
    changed = "\n".join(rows).replace("unit: rad", "unit: deg")
    pose = "{base_yaw: 0, shoulder: -8.594366926962348, elbow: 97.97578296737076, wrist: 90.52733163067008}"
    return (
        changed.replace("{base_yaw: 0, shoulder: -0.15, elbow: 1.71, wrist: 1.58}", pose)
        .replace("joint_pos_rad: 0.1", "joint_pos_deg: 5.729577951308232")
        .replace("eps: 1e-8", "eps: 0")
    )


def test_a_policy_in_degrees_on_a_robot_in_radians_means_the_same():
    radians = bind(load_contract(arm_contract().replace("eps: 1e-8", "eps: 0")), load_robot(arm_robot()))
    degrees = bind(load_contract(in_degrees(arm_contract())), load_robot(arm_robot()))
    q = np.array([0.3, -0.2, 1.1, 0.7])
    raw = np.array([0.1, -1.0, 0.5, 2.0])
    results = []
    for binding in (radians, degrees):
        plan = binding.plan()
        term = plan["inputs"][1]["terms"][0]
        network = (q * term["per_si"] + term["offset"]) * np.array(term["scale"])
        action = plan["outputs"][0]["action"]
        results.append((network, (raw * action["scale"] + action["offset"]) * np.array(action["si_per_unit"])))
        np.testing.assert_allclose(plan["start"]["pose"], [0, -0.15, 1.71, 1.58])
        np.testing.assert_allclose(plan["start"]["within_pos"], [0.1] * 4)
    np.testing.assert_allclose(results[0][0], results[1][0])
    np.testing.assert_allclose(results[0][1], results[1][1])
    assert {(each.robot_unit, each.policy_unit) for each in degrees.conversions} == {("rad", "deg")}
    assert radians.conversions == ()


def test_robot_limits_in_degrees_and_percent_reach_the_core_in_si():
    plan = plan_of(so101_contract(), so101_robot())
    assert plan["joints"]["si_per_unit"] == pytest.approx([math.pi / 180] * 5 + [0.01])
    assert plan["limits"]["pos"][0]["hi"] == pytest.approx(math.radians(112))
    assert plan["limits"]["vel"][0]["limit"] == pytest.approx(math.radians(150))
    assert plan["limits"]["pos"][5] == pytest.approx({"lo": 0, "hi": 1, "refuse_lo": -0.1, "refuse_hi": 1.1})
    assert plan["start"]["within_pos"] == pytest.approx([math.radians(25)] * 5 + [0.25])


def test_rates_become_whole_ticks():
    timing = plan_of(arm_contract(), arm_robot())["timing"]
    assert (timing["tick_ns"], timing["ticks_per_period"], timing["ticks_per_inference"]) == (5 * NS, 10, 80)
    thirds = plan_of(so101_contract(), wrong(so101_robot(), ("id: my_arm, rate_hz: 30", "id: my_arm, rate_hz: 150")))
    core.check_plan(json.dumps(thirds))
    assert thirds["timing"]["ticks_per_period"] == 5


def test_a_synchronous_policy_waits_within_the_tick_and_its_action_outlives_a_late_chunk():
    timing = plan_of(g1_contract(), g1_robot())["timing"]
    assert timing["inference_deadline_ns"] == 1_600_000  # 0.8 of the 2 ms tick
    assert timing["action_valid_ns"] == 30 * NS  # a period of 20 ms and the latency budget of 10 ms


def test_the_last_action_of_a_chunk_bridges_the_latency_budget():
    timing = plan_of(so101_contract(), so101_robot())["timing"]
    assert timing["action_valid_ns"] == pytest.approx((1 / 30 + 0.4) * 1e9, abs=1)
    assert (
        plan_of(arm_contract(), arm_robot())["timing"]["action_valid_ns"] == 50 * NS
    )  # the chunk itself is long enough


def test_where_the_robot_takes_torque_the_supervisor_runs_the_pd_law():
    contract, robot = g1_contract(), wrong(g1_robot(), ("accepts: [position_pd]", "accepts: [torque]"))
    command = plan_of(contract, robot)["command"]
    assert command["kind"] == "position_pd"
    assert command["host_pd"] is True
    assert plan_of(contract, g1_robot())["command"]["host_pd"] is False


def test_a_default_pose_in_degrees_is_refused(request):
    # Taken for radians it collapses a Go1 flat with no tilt: no tilt detector sees it.
    folder = request.config.rootpath / "tests" / "policies" / "pg_go1"
    contract = wrong(
        (folder / "contract.yaml").read_text("utf-8"),
        ("default: 0.9, ", "default: 51.6, "),
        ("default: -1.8,", "default: -103.1,"),
        ("default: 0.1, ", "default: 5.7, "),
        ("default: -0.1,", "default: -5.7,"),
    )
    with pytest.raises(InterlockError) as refusal:
        plan_of(contract, (folder / "robot.yaml").read_text("utf-8"))
    assert {each.code for each in refusal.value.problems} == {"default-outside-limits"}


def test_two_policies_of_one_robot_are_not_one_contract(request):
    folder = request.config.rootpath / "tests" / "policies"
    identities = {
        plan_of(
            (folder / name / "contract.yaml").read_text("utf-8"), (folder / name / "robot.yaml").read_text("utf-8")
        )["identity"]["contract"]
        for name in ("url_g1", "hs_g1_ppo", "hs_g1_fastsac")
    }
    assert len(identities) == 3


def test_the_plan_belongs_to_the_caller():
    binding = bind(load_contract(arm_contract()), load_robot(arm_robot()))
    binding.plan()["limits"].clear()
    assert binding.plan()["limits"]["pos"]
