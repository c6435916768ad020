"""Whatever does not fit is refused, with a stable code, a hint, and everything in one list."""

import pytest
from documents import PAIRS, arm_contract, arm_robot, g1_contract, g1_robot, so101_contract, so101_robot, wrong

from interlock.contract.bind import bind
from interlock.contract.codes import HINTS
from interlock.contract.text import load_contract, load_robot
from interlock.errors import InterlockError


def problems_of(contract, robot, calibration=None):
    with pytest.raises(InterlockError) as refusal:
        bind(load_contract(contract), load_robot(robot), calibration)
    assert refusal.value.next
    for each in refusal.value.problems:
        assert each.hint
        assert each.where
        assert each.code in HINTS
    return refusal.value.problems


def codes_of(contract, robot, calibration=None):
    return [each.code for each in problems_of(contract, robot, calibration)]


CONTRACT_CHANGES = [
    ("g1", "trained_for: unitree_g1_29dof", "trained_for: unitree_g1_23dof", {"wrong-robot"}),
    ("g1", "left_knee, right_knee", "left_knie, right_knee", {"joint-unmatched", "pattern-unmatched"}),
    ("g1", "name_suffix: _joint ", "name_suffix: _motor ", {"joint-unknown", "joint-missing"}),
    (
        "g1",
        "order: [left_hip_pitch, right_hip_pitch,",
        "order: [left_hip_pitch, left_hip_pitch,",
        {"joint-twice", "joint-matched-twice", "joint-unmatched"},
    ),
    ("g1", "    .*_knee:  ", "    .*_ellbow:", {"pattern-unmatched", "joint-unmatched"}),
    ("g1", "    .*_knee:  ", "    .*ee|.*_elbow: ", {"joint-matched-twice"}),
    (
        "g1",
        ".*_knee:                      {default: 0.3,   kp: 150, kd: 4}",
        ".*_knee: {default: 0.3, kp: 150}",
        {"rows-differ"},
    ),
    ("g1", "kd: N*m*s/rad}", "}", {"unit-missing"}),
    ("g1", "unit: {default: rad, ", "unit: {", {"unit-missing"}),
    ("g1", "kd: N*m*s/rad", "kd: N*m/rad", {"unit-mismatch"}),
    ("g1", "unit: {default: rad", "unit: {default: percent", {"unit-mismatch"}),
    ("g1", "joint_vel,         unit: rad/s", "joint_vel,         unit: rad", {"unit-mismatch"}),
    ("g1", "control_period_ms: 20", "control_period_ms: 15", {"rate-mismatch"}),
    ("g1", "control_period_ms: 20", "control_period_ms: 1", {"rate-mismatch"}),
    ("g1", "kp: 200, kd: 5", "kp: 2000, kd: 5", {"gain-above-maximum"}),
    ("g1", "kind: joint_position_target", "kind: joint_velocity_target", {"unit-mismatch"}),
    ("g1", "kind: joint_position_target", "kind: end_effector_pose", {"kind-not-served"}),
    ("g1", "{term: base_ang_vel,      unit: rad/s", "{term: base_lin_vel,      unit: m/s", {"sensor-missing"}),
    ("g1", "default: -0.1, ", "default: -5.73,", {"default-outside-limits"}),
    (
        "g1",
        "    lin_vel_x: {unit: m/s,   range: [-0.5, 1.0]}",
        "    lin_vel_x: {unit: m/s,   range: [0.2, 1.0]}",
        {"behaviour-impossible"},
    ),
    ("g1", "max_age_ms: 20", "max_age_ms: 1", {"budget-impossible"}),
    ("g1", "latency_budget_ms: 10", "latency_budget_ms: 10\n  inference_deadline_ms: 3", {"budget-impossible"}),
    ("g1", "latency_budget_ms: 10", "latency_budget_ms: 10\n  action_valid_ms: 19", {"budget-impossible"}),
    ("so101", "calibration: 9f31c2", "calibration: 000000a", {"calibration-mismatch"}),
    ("so101", "  zero: {calibration: 9f31c2} ", "  ", {"calibration-mismatch"}),
    ("so101", "unit: {gripper: percent, others: deg}", "unit: deg", {"unit-mismatch"}),
    ("so101", "{camera: wrist, ", "{camera: gripper, ", {"camera-missing", "camera-swapped"}),
    ("so101", "top:   {camera: top, ", "top:   {camera: wrist, ", {"camera-swapped", "camera-twice"}),
    ("so101", "{camera: top,   size_hw: [480, 640]", "{camera: top,   size_hw: [240, 320]", {"image-mismatch"}),
    ("so101", "control_rate_hz: 30", "control_rate_hz: 20", {"rate-mismatch"}),
    (
        "so101",
        "control_rate_hz: 30, chunk: 100, execute: 100",
        "control_rate_hz: 30, chunk: 100, execute: 101",
        {"timing-contradiction"},
    ),
    ("so101", "execute: 100, ", "", {"missing-key"}),
    ("so101", "handover: replace", "handover: temporal_ensemble", {"not-served"}),
    (
        "so101",
        "each:\n",
        "each:\n    wrist: {state: {mean: 1, std: 1}, action: {mean: 1, std: 1}}\n",
        {"pattern-unmatched"},
    ),
    ("arm", "  eps: 1e-8\n", "", {"epsilon-missing"}),
    ("arm", "  start_pose: {base_yaw: 0,", "  start_pose: {base_yaw: 170,", {"start-outside-limits"}),
    (
        "arm",
        "goals:\n  text: {tasks: [reach the red block, reach the green block, reach the blue block]}\n",
        "",
        {"goal-missing"},
    ),
    ("arm", "padding_side: right", "padding_side: left", {"not-served"}),
    ("arm", "shape: [1, 16, 4]", "shape: [1, 4, 16]", {"shape-mismatch"}),
    ("arm", "dtype: float32, shape: [1, 4]", "dtype: float32, shape: [1, 5]", {"shape-mismatch"}),
    (
        "arm",
        "{of: tokens, dtype: int64, shape: [1, 8]}",
        "{of: tokens, dtype: int64, shape: [1, 9]}",
        {"shape-mismatch"},
    ),
    ("arm", "resize: none", "resize: {rule: opencv_linear, from_hw: [480, 640]}", {"image-mismatch"}),
    ("arm", "role: action, ", "role: action, unit: rad, ", {"unit-twice"}),
    ("arm", "control_rate_hz: 20", "control_rate_hz: 200", {"camera-slow"}),
    ("arm", "latency_budget_ms: 200", "latency_budget_ms: 200\n  action_valid_ms: 20", {"budget-impossible"}),
]

ROBOT_CHANGES = [
    (
        "g1",
        "policy_lost:  {do: damp, kd: {",
        "policy_lost:  {do: stop_and_hold} #",
        {"floating-base-hold", "damp-gain-missing"},
    ),
    ("g1", "goal_lost:    {do: policy, goal: zero}", "goal_lost:    {do: stop_and_hold}", {"floating-base-hold"}),
    (
        "g1",
        "on_exit:      {do: damp}",
        "on_exit: {do: go_to, pose: sit, then: hold}",
        {"floating-base-hold", "pose-unknown"},
    ),
    (
        "g1",
        "policy_lost:  {do: damp, kd: {.*_(hip|knee).*: 5, .*_ankle_.*: 4, waist_.*: 5, others: 2}}",
        "policy_lost: {do: policy, goal: zero}",
        {"behaviour-impossible", "damp-gain-missing"},
    ),
    ("g1", ".*_ankle_.*: 4", ".*_ankle_.*: 5", {"gain-above-maximum"}),
    ("g1", "accepts: [position_pd]", "accepts: [position]", {"kind-not-accepted", "limit-unenforced"}),
    ("g1", "accepts: [position_pd]", "accepts: [velocity]", {"kind-not-accepted", "limit-unenforced"}),
    (
        "g1",
        "enforce: [pos, torque, target_step, vel_measured]",
        "enforce: [pos, torque, target_step]",
        {"limit-missing"},
    ),
    (
        "g1",
        "enforce: [pos, torque, target_step, vel_measured]",
        "enforce: [pos, torque, target_step, vel_measured, acc]",
        {"limit-not-for-kind"},
    ),
    ("g1", "  target_step_rad: 0.5 ", "  #", {"limit-missing"}),
    ("g1", "period_ms: 2, alive: crc", "period_ms: 3, alive: crc", {"rate-mismatch"}),
    ("g1", "ang_vel: rad/s}, frame: base", "ang_vel: rad/s}, frame: imu", {"frame-mismatch"}),
    ("g1", "gives: {quat: wxyz, ang_vel: rad/s}", "gives: {quat: wxyz}", {"sensor-missing"}),
    ("g1", "gives: {quat: wxyz, ang_vel: rad/s}", "gives: {ang_vel: rad/s}", {"sensor-missing"}),
    ("g1", "gives: {pos: rad, vel: rad/s, torque: N*m}", "gives: {pos: rad}", {"sensor-missing"}),
    ("g1", "gives: {pos: rad, ", "gives: {pos: deg, ", {"sensor-unit"}),
    ("g1", "kd_max: same}", "kd_max: assumed}", {"limit-assumed"}),
    ("g1", ", kd_max: same}", "}", {"limit-without-source"}),
    (
        "g1",
        "imu:    {gives: {quat: wxyz, ang_vel: rad/s}, frame: base, at: pelvis, period_ms: 2",
        "imu:    {gives: {quat: wxyz, ang_vel: rad/s}, frame: base, at: pelvis, period_ms: 40",
        {"rate-mismatch"},
    ),
    ("so101", "jerk: 9000}", "jerk: 9000, torque: 3}", {"rows-differ", "unit-missing", "limit-without-source"}),
    ("so101", ", acc: 900, jerk: 9000", ", jerk: 9000", {"rows-differ"}),
    (
        "so101",
        "wrist: {device: /dev/v4l/by-id/usb-IMX,  ",
        "wrist: {device: /dev/v4l/by-id/usb-C270, ",
        {"camera-device-twice"},
    ),
    ("so101", "rest: {shoulder_pan: 0", "rest: {shoulder_pan: 200", {"start-outside-limits"}),
    ("so101", "bound_ms: 50", "reason: none", {"missing-key"}),
    ("so101", "policy_lost: {do: stop_and_hold}", "policy_lost: {do: damp, kd: {others: 1}}", {"behaviour-not-served"}),
    ("arm", "accepts: [position]", "accepts: [position_pd]", {"gains-missing", "limit-missing", "limit-unenforced"}),
    ("arm", "rate_hz: 20", "rate_hz: 2", {"camera-slow", "budget-impossible"}),
    ("arm", "  front: {", "  side: {", {"camera-missing"}),
    ("arm", 'use: "sim:arm"', "use: acme_arm", {"limit-assumed", "estop-missing"}),
    ("arm", ", jerk: 1500", "", {"limit-missing", "unknown-key"}),
    ("arm", ", vel: 3.5", ", torque: 3", {"rows-differ", "limit-without-source", "unit-missing", "unknown-key"}),
]


@pytest.mark.parametrize(("pair", "old", "new", "codes"), CONTRACT_CHANGES)
def test_a_wrong_contract_is_refused(pair, old, new, codes):
    contract, robot = PAIRS[pair]
    found = set(codes_of(wrong(contract(), (old, new)), robot()))
    assert found
    assert found <= codes
    assert found & codes


@pytest.mark.parametrize(("pair", "old", "new", "codes"), ROBOT_CHANGES)
def test_a_wrong_robot_is_refused(pair, old, new, codes):
    contract, robot = PAIRS[pair]
    found = set(codes_of(contract(), wrong(robot(), (old, new))))
    assert found
    assert found <= codes


def test_all_problems_are_reported_together():
    contract = wrong(
        g1_contract(),
        ("trained_for: unitree_g1_29dof", "trained_for: other"),
        ("control_period_ms: 20", "control_period_ms: 15"),
        ("kp: 200, kd: 5", "kp: 999, kd: 5"),
    )
    robot = wrong(g1_robot(), ("goal_lost:    {do: policy, goal: zero}", "goal_lost: {do: stop_and_hold}"))
    assert {"wrong-robot", "rate-mismatch", "gain-above-maximum", "floating-base-hold"} <= set(
        codes_of(contract, robot)
    )


def test_a_name_that_is_not_found_lists_the_names_that_exist():
    (problem,) = [
        each
        for each in problems_of(wrong(arm_contract(), ("elbow", "elbo")), arm_robot())
        if each.code == "joint-unknown"
    ]
    assert "base_yaw, shoulder, elbow, wrist" in problem.expected
    assert problem.got == "elbo"


def test_the_line_of_the_mistake_is_named():
    robot = wrong(g1_robot(), ("goal_lost:    {do: policy, goal: zero}", "goal_lost: {do: stop_and_hold}"))
    line = next(n for n, text in enumerate(robot.splitlines(), 1) if "goal_lost" in text)
    assert [each.where for each in problems_of(g1_contract(), robot)] == [f"robot.yaml:{line} safe.goal_lost"]


def test_the_calibration_of_the_unit_counts():
    bind(load_contract(so101_contract()), load_robot(so101_robot()), "9f31c2")
    assert codes_of(so101_contract(), so101_robot(), "0ther") == ["calibration-mismatch"]


def test_calibration_and_units_are_part_of_the_bindings_identity():
    first = bind(load_contract(arm_contract()), load_robot(arm_robot()))
    again = bind(load_contract(arm_contract()), load_robot(arm_robot()))
    zeroed = [
        wrong(
            text,
            (
                "  order: [base_yaw, shoulder, elbow, wrist]",
                "  order: [base_yaw, shoulder, elbow, wrist]\n  zero: {calibration: c1}",
            ),
        )
        for text in (arm_contract(), arm_robot())
    ]
    other = bind(load_contract(zeroed[0]), load_robot(zeroed[1]))
    assert first.identity == again.identity != other.identity
