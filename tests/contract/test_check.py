"""What `interlock check` says before anything slow begins."""

import json

import pytest
from documents import EXAMPLES, arm_contract, arm_robot, g1_contract, g1_robot, so101_contract, so101_robot, wrong

from interlock.contract.text import load_contract, load_robot
from interlock.errors import InterlockError, NeedsAnswer
from interlock.release.check import check, check_texts


def test_a_pd_policy_says_what_is_enforced_and_why_the_rest_is_not():
    report = check(load_contract(g1_contract()), load_robot(g1_robot()))
    assert report.fits
    assert report.lines()[:6] == [
        "g1-velocity fits unitree_g1_29dof: 29 joints by name, rad = rad, 50 Hz",
        "guard will enforce: position, torque, target step, measured velocity, gains",
        (
            "not applicable: velocity, acceleration, jerk (the target is a spring's far end, not a trajectory; "
            "held to arm-like limits a walking policy falls)"
        ),
        (
            "not applicable: distance to the measured position "
            "(the predicted torque bounds how far the target is from where the robot is)"
        ),
        "not set: travel within 250 ms, torque rate",
        "missing: nothing",
    ]


def test_a_trajectory_policy_says_units_calibration_cameras_and_rate():
    report = check(load_contract(so101_contract()), load_robot(so101_robot()))
    assert report.lines()[:2] == [
        (
            "pick-cube fits so101_follower: 6 joints by name, deg = deg, percent = percent, "
            "calibration 9f31c2 = 9f31c2, 2 cameras, 30 Hz"
        ),
        "guard will enforce: position, velocity, acceleration, jerk",
    ]


def test_every_choice_that_was_not_written_is_printed():
    report = check(load_contract(arm_contract()), load_robot(arm_robot()))
    assert "refuse_beyond.vel_ratio 4" in report.lines()[-1]
    assert "latency_budget_ms" not in report.lines()[-1]
    binding = report.bound()
    assert {each.key for each in binding.choices if each.is_written} >= {
        "choices.latency_budget_ms",
        "choices.max_skew_ms",
        "choices.start_pose",
    }


def test_a_missing_limit_is_named_in_the_table_and_refused():
    robot = wrong(arm_robot(), (", jerk: 1500", ""), (", jerk: assumed", ""))
    report = check(load_contract(arm_contract()), load_robot(robot))
    assert not report.fits
    assert "missing: jerk (joints.each.*.jerk is not in the robot file)" in report.lines()
    with pytest.raises(InterlockError) as refusal:
        report.bound()
    assert refusal.value.code == "limit-missing"


def test_a_limit_that_acts_for_no_command_is_refused():
    robot = wrong(
        arm_robot(),
        ("unit: {others: rad} ", "unit: {others: rad, torque: N*m} "),
        (", jerk: 1500", ", jerk: 1500, torque: 20"),
        (", jerk: assumed", ", jerk: assumed, torque: scene.xml"),
    )
    assert [each.code for each in check(load_contract(arm_contract()), load_robot(robot)).problems] == [
        "limit-unenforced"
    ]
    reasoned = (
        robot + "limits_for_position: {enforce: [pos, vel, acc, jerk], not_applicable: {torque: fuse of the supply}}\n"
    )
    report = check(load_contract(arm_contract()), load_robot(reasoned))
    assert report.fits
    assert "not applicable: torque (fuse of the supply)" in report.lines()


def test_a_limit_that_may_be_left_out_acts_as_soon_as_there_is_a_number():
    robot = wrong(
        arm_robot(),
        (", jerk: 1500", ", jerk: 1500, window_travel: 0.5, distance: 0.3"),
        (", jerk: assumed", ", jerk: assumed, window_travel: assumed, distance: servo manual"),
    )
    report = check(load_contract(arm_contract()), load_robot(robot))
    assert {each.quantity: each.source for each in report.enforced if each.status == "enforced"}["distance"] == (
        "servo manual"
    )
    assert report.binding is not None
    limits = report.binding.plan()["limits"]
    assert limits["window_travel"] == [{"limit": 0.5, "refuse_beyond": 1.0}] * 4
    assert limits["distance"] == [{"limit": 0.3, "refuse_beyond": 0.6}] * 4
    assert "torque_rate" not in limits
    without = check(load_contract(arm_contract()), load_robot(arm_robot()))
    assert "not set: travel within 250 ms, distance to the measured position" in without.lines()


def test_a_limit_that_can_act_for_no_command_is_refused_although_it_may_be_left_out():
    robot = wrong(
        arm_robot(),
        (", jerk: 1500", ", jerk: 1500, torque_rate: 500"),
        (", jerk: assumed", ", jerk: assumed, torque_rate: assumed"),
    )
    assert [each.code for each in check(load_contract(arm_contract()), load_robot(robot)).problems] == [
        "limit-unenforced"
    ]


def test_unanswered_facts_of_both_files_are_listed_together():
    robot = (EXAMPLES / "g1" / "robot.yaml").read_text(encoding="utf-8")
    report = check_texts(wrong(g1_contract(), ("chunk: 1\n", "chunk: ask\n")), robot)
    assert [each.where for each in report.unanswered] == [
        "contract.yaml:9 timing.chunk",
        "robot.yaml:5 driver.network",
        "robot.yaml:53 safe.estop.bound_ms",
    ]
    with pytest.raises(NeedsAnswer):
        report.bound()


def test_problems_and_unanswered_facts_come_together():
    report = check_texts(
        wrong(g1_contract(), ("chunk: 1\n", "chunk: ask\n"), ("reader: unitree-deploy", "raeder: x")), g1_robot()
    )
    assert {each.code for each in report.problems} == {"missing-key", "unknown-key"}
    assert len(report.unanswered) == 1
    with pytest.raises(InterlockError) as refusal:
        report.bound()
    assert {each.code for each in refusal.value.problems} == {"missing-key", "unknown-key", "unanswered"}


def test_the_report_is_plain_data():
    report = check(load_contract(so101_contract()), load_robot(so101_robot()))
    data = json.loads(json.dumps(report.as_json()))
    assert data["fits"] is True
    assert set(data["identity"]) == {"contract", "robot", "binding"}
    assert {each["quantity"]: each["status"] for each in data["limits"]}["jerk"] == "enforced"
