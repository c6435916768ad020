"""What the schema can say beyond the examples: state, noise, masks, statistics, pictures, phases, kinds of command."""

import json

import pytest
from documents import arm_contract, arm_robot, g1_contract, g1_robot, wrong

from interlock.contract.bind import bind, survey
from interlock.contract.expand_contract import expand_contract
from interlock.contract.text import draft_contract, load_contract, load_robot
from interlock.errors import InterlockError

core = pytest.importorskip("interlock._core", reason="the extension is not built")

STATE = "state: {h_in: {next: h_out, shape: [1, 1, 64], dtype: float32, at_reset: zeros, on_dropped_chunk: keep, on_fallback: reset, on_swap: reset}}"
H_OUT = "\n  h_out: {role: state, shape: [1, 1, 64]}\ngoals:"


def plan_of(contract, robot):
    plan = bind(load_contract(contract), load_robot(robot)).plan()
    core.check_plan(json.dumps(plan))
    return plan


def codes_of(contract, robot):
    return {each.code for each in survey(load_contract(contract), load_robot(robot)).problems}


def recurrent(state=STATE, output=H_OUT):
    return wrong(arm_contract(), ("\nstate: none", f"\n{state}"), ("\ngoals:", output))


def test_recurrent_state_is_a_pair_of_input_and_output():
    plan = plan_of(recurrent(), arm_robot())
    assert plan["inputs"][-1] == {"kind": "state", "name": "h_in", "shape": [1, 1, 64], "output": "h_out"}
    assert plan["outputs"][-1]["role"] == "state"


def test_a_pair_that_does_not_fit_is_refused():
    assert codes_of(recurrent(output="\n  h_out: {role: state, shape: [1, 1, 32]}\ngoals:"), arm_robot()) == {
        "state-incomplete"
    }
    assert codes_of(recurrent(output="\ngoals:"), arm_robot()) == {"state-incomplete"}
    assert codes_of(recurrent(state="state: none"), arm_robot()) == {"state-incomplete"}


def test_noise_is_an_input_with_a_seed():
    text = wrong(
        arm_contract(),
        ("noise: none", "noise: {z: {shape: [1, 16, 4], dtype: float32, distribution: standard_normal, seed: 7}}"),
    )
    assert plan_of(text, arm_robot())["inputs"][-1] == {"kind": "noise", "name": "z", "shape": [1, 16, 4], "seed": 7}


def test_a_token_mask_is_an_input_of_its_own():
    text = wrong(arm_contract(), ("\nimage: {color", "\n  mask: {of: token_mask, dtype: int64}\nimage: {color"))
    assert plan_of(text, arm_robot())["inputs"][-1] == {"kind": "token_mask", "name": "mask", "length": 8}


def test_min_and_max_become_minus_one_and_one():
    text = wrong(
        arm_contract(),
        ("state: {mean: 0.015826, std: 0.568552}", "state: {min: -2, max: 6}"),
        ("action: {mean: -0.000361, std: 0.174929}", "action: {min: -0.5, max: 1}"),
    )
    plan = plan_of(text, arm_robot())
    term, action = plan["inputs"][1]["terms"][0], plan["outputs"][0]["action"]
    assert [(q + term["offset"][0]) * term["scale"][0] for q in (-2, 2, 6)] == [-1, 0, 1]
    assert [raw * action["scale"][0] + action["offset"][0] for raw in (-1, 1)] == [-0.5, 1]


def test_a_joint_that_never_moved_is_mentioned():
    text = wrong(arm_contract(), ("std: 0.568552", "std: 0"))
    notes = bind(load_contract(text), load_robot(arm_robot())).notes
    assert any("base_yaw never moved in training" in note for note in notes)
    assert codes_of(wrong(text, ("eps: 1e-8", "eps: 0")), arm_robot()) == {"not-positive"}


def test_a_convention_of_the_exporter_is_used_and_said():
    text = wrong(arm_contract(), ("reader: own-vla", "reader: lerobot"), ("  eps: 1e-8\n", ""))
    binding = bind(load_contract(text), load_robot(arm_robot()))
    assert "eps 1e-08 added to every std (lerobot)" in binding.notes
    assert binding.contract.inputs == expand_contract(load_contract(arm_contract())).inputs


def test_pictures_may_be_bytes_or_resized_by_a_named_rule():
    as_bytes = wrong(
        arm_contract(),
        (
            "dtype: float32, range: [0, 1], resize: none,\n  mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225], eps: 0}",
            "dtype: uint8, resize: none}",
        ),
    )
    assert plan_of(as_bytes, arm_robot())["inputs"][0]["uint8"] is True
    resized = wrong(arm_contract(), ("resize: none", "resize: {rule: opencv_area, from_hw: [192, 192]}"))
    image = plan_of(resized, wrong(arm_robot(), ("size_hw: [96, 96]", "size_hw: [192, 192]")))["inputs"][0]
    assert (image["resize"], image["height"]) == ("area", 96)
    unknown = wrong(arm_contract(), ("resize: none", "resize: {rule: bilinear, from_hw: [192, 192]}"))
    assert "opencv_linear" in draft_contract(unknown).problems[0].expected
    larger = wrong(arm_contract(), ("resize: none", "resize: {rule: opencv_area, from_hw: [48, 48]}"))
    assert codes_of(larger, wrong(arm_robot(), ("size_hw: [96, 96]", "size_hw: [48, 48]"))) == {"image-mismatch"}


def test_colour_order_of_policy_and_robot_are_kept_apart():
    plan = plan_of(arm_contract(), wrong(arm_robot(), ("color: rgb", "color: bgr")))
    assert (plan["inputs"][0]["bgr"], plan["cameras"][0]["bgr"]) == (False, True)


def test_a_slew_is_of_all_parts_or_of_none():
    one = wrong(g1_contract(), ("range: [-0.5, 1.0]}", "range: [-0.5, 1.0], slew_per_s: 1}"))
    assert codes_of(one, g1_robot()) == {"missing-key"}
    every = wrong(
        one,
        ("range: [-0.3, 0.3]}", "range: [-0.3, 0.3], slew_per_s: 1}"),
        ("range: [-0.2, 0.2]}", "range: [-0.2, 0.2], slew_per_s: 2}"),
    )
    assert plan_of(every, g1_robot())["goal"]["slew_per_s"] == [1, 1, 2]


def test_a_probe_may_name_its_period_and_nobody_else():
    def outputs(text):
        return plan_of(wrong(arm_contract(), ("\ngoals:", f"\n  hidden: {text}\ngoals:")), arm_robot())["outputs"]

    assert outputs("{role: probe, shape: [1, 160], period_ms: 20}")[1]["period_ns"] == 20_000_000
    assert "period_ns" not in outputs("{role: probe, shape: [1, 160]}")[1], "older plans stay what they were"
    other = "\n  sure: {role: confidence, shape: [1, 1], period_ms: 20}\ngoals:"
    assert codes_of(wrong(arm_contract(), ("\ngoals:", other)), arm_robot()) == {"wrong-value"}
    nothing = "\n  hidden: {role: probe, shape: [1, 160], period_ms: 0}\ngoals:"
    with pytest.raises(InterlockError) as caught:
        plan_of(wrong(arm_contract(), ("\ngoals:", nothing)), arm_robot())
    assert caught.value.code == "not-positive"


def test_other_roles_of_outputs_are_kept():
    text = wrong(
        arm_contract(),
        ("\ngoals:", "\n  sure: {role: confidence, shape: [1, 1]}\n  hidden: {role: probe, shape: [1, 160]}\ngoals:"),
    )
    assert [each["role"] for each in plan_of(text, arm_robot())["outputs"]] == ["action", "confidence", "probe"]
    twice = wrong(
        arm_contract(), ("\ngoals:", "\n  more: {role: action, kind: joint_position_target, like: joints}\ngoals:")
    )
    assert codes_of(twice, arm_robot()) == {"action-missing"}


TWO_JOINTS = """
schema: interlock.robot/1
type: two
base: fixed
driver: {use: "sim:two", period_ms: 5}
sensors: {joints: {gives: {pos: rad, vel: rad/s}, period_ms: 5, clock: host}}
joints:
  order: [a, b]
  accepts: [ACCEPTS]
  unit: {pos: rad, vel: rad/s, acc: rad/s^2, torque: N*m}
  each: {a: ROW, b: ROW}
  source: {SOURCE}
safe:
  before_start: none
  policy_lost: {do: LOST}
  goal_lost: {do: LOST}
  on_exit: {do: LOST}
  supervisor_lost: {command_timeout_ms: 50, drives_then: limp}
  estop: {by: none, reason: simulated}
"""
TWO_POLICY = """
schema: interlock.contract/1
name: two
trained_for: two
source: {reader: onnx, files: source/}
timing: {control_rate_hz: 100, chunk: 1, action_delay_ms: 0}
joints: {order: [b, a], unit: deg, each: {others: {default: 10}}}
inputs:
  obs:
    dtype: float32
    history: none
    clip: [-5, 5]
    terms:
      - {term: joint_pos, unit: deg, scale: {a: 1, b: 2}, offset: [3, 4], clip: [-90, 90]}
      - {term: phase, of: sin, period_s: 0.5, init_rad: [0], still: none, scale: 1}
state: none
noise: none
language: none
outputs: {act: {role: action, kind: KIND, unit: UNIT, scale: {a: 1, b: 2}, offset: 0, clip: none}}
"""


def test_a_velocity_policy_is_bounded_in_position_velocity_and_acceleration():
    row = "{pos: [-1, 1], vel: 2, acc: 20}"
    robot = wrong(
        TWO_JOINTS,
        ("ACCEPTS", "velocity"),
        ("ROW", row),
        ("SOURCE", "pos: x, vel: x, acc: x"),
        ("LOST", "stop_and_hold"),
        ("torque: N*m", "torque: N*m"),
    )
    contract = wrong(TWO_POLICY, ("KIND", "joint_velocity_target"), ("UNIT", "deg/s"))
    plan = plan_of(contract, robot)
    assert plan["command"]["kind"] == "velocity"
    assert {key for key, value in plan["limits"].items() if value} == {"pos", "vel", "acc"}
    term = plan["inputs"][0]["terms"][0]
    assert (term["scale"], term["offset"], term["clip"]) == ([2, 1], [3, 4], [-90, 90])
    assert plan["inputs"][0]["terms"][1]["term"]["phase"]["freq_hz"] == 2
    assert plan["outputs"][0]["action"]["scale"] == [2, 1]
    assert codes_of(contract, wrong(robot, (", acc: 20", ""), (", acc: x", ""))) == {"limit-missing"}
    assert codes_of(wrong(contract, ("deg/s", "deg")), robot) == {"unit-mismatch"}


def test_a_torque_policy_is_bounded_in_torque_and_measured_velocity():
    row = "{vel: 2, torque: 9}"
    damp = ("LOST", "damp, kd: {others: 1}")
    robot = wrong(TWO_JOINTS, ("ACCEPTS", "torque"), ("ROW", row), ("SOURCE", "vel: x, torque: x"), damp)
    contract = wrong(TWO_POLICY, ("KIND", "joint_torque"), ("UNIT", "N*m"))
    plan = plan_of(contract, robot)
    assert {key for key, value in plan["limits"].items() if value} == {"torque", "vel_measured"}
    assert codes_of(contract, wrong(robot, ("damp, kd: {others: 1}", "stop_and_hold"))) == {"behaviour-not-served"}
    assert codes_of(wrong(contract, ("N*m", "rad")), robot) == {"unit-mismatch"}


def facts_contract(facts):
    """The answer sheet of a real policy as a contract of ours."""
    words = {
        "base_ang_vel": "{{term: base_ang_vel, unit: rad/s, frame: base, scale: {scale}}}",
        "base_lin_vel": "{{term: base_lin_vel, unit: m/s, frame: base, scale: {scale}}}",
        "projected_gravity": "{{term: projected_gravity, unit: 1, frame: base, scale: {scale}}}",
        "command": "{{term: goal, of: velocity, scale: {scale}}}",
        "command_lin": "{{term: goal, of: velocity, parts: [lin_vel_x, lin_vel_y], scale: {scale}}}",
        "command_ang": "{{term: goal, of: velocity, parts: [ang_vel_z], scale: {scale}}}",
        "joint_pos_rel": "{{term: joint_pos_rel, unit: rad, scale: {scale}}}",
        "joint_vel": "{{term: joint_vel, unit: rad/s, scale: {scale}}}",
        "last_action": "{{term: last_action, of: raw, scale: {scale}}}",
    }
    phase = facts["phase"] or {}
    init = phase.get("init", [0])
    rate = f"freq_hz: {phase['freq_hz']}" if "freq_hz" in phase else f"period_s: {phase.get('period_s', 1)}"
    for each in ("sin", "cos"):
        words[f"phase_{each}"] = (
            f"{{{{term: phase, of: {each}, {rate}, init_rad: {init}, still: none, scale: {{scale}}}}}}"
        )
    terms = []
    for each in facts["obs"]:
        layout = phase["layout"] if each["term"] == "phase" else [None]
        for part in layout:
            word = words[f"phase_{part}" if part else each["term"]]
            terms.append("      - " + word.format(scale=each["scale"]))
    names = facts["joints_policy_order"]
    kp, kd = facts["kp"], facts.get("kd") or facts["kd_joint_damping"]
    rows = "\n".join(
        f"    {name}: {{default: {q}, kp: {p}, kd: {d}}}"
        for name, q, p, d in zip(names, facts["default_joint_pos"], kp, kd, strict=True)
    )
    history = facts["obs"][0].get("history")
    shown = (
        f"{{steps: {history}, layout: per_term, order: oldest_first, at_reset: repeat_first}}" if history else "none"
    )
    goal = "{unit: UNIT, range: [-1, 1]}"
    return f"""
schema: interlock.contract/1
name: {facts["name"]}
trained_for: robot
source: {{reader: facts, files: source/}}
timing: {{control_period_ms: {facts["control_dt"] * 1000}, chunk: 1, action_delay_ms: 0}}
joints:
  order: [{", ".join(names)}]
  unit: {{default: rad, kp: N*m/rad, kd: N*m*s/rad}}
  each:
{rows}
inputs:
  obs:
    dtype: float32
    history: {shown}
    clip: {[-facts["clip_obs"], facts["clip_obs"]] if "clip_obs" in facts else "none"}
    terms:
{chr(10).join(terms)}
state: none
noise: none
language: none
outputs:
  actions:
    role: action
    kind: joint_position_target
    unit: rad
    scale: {facts["action"]["scale"]}
    offset: default
    clip: {facts["action"].get("clip", "none")}
goals:
  velocity: {{lin_vel_x: {goal.replace("UNIT", "m/s")}, lin_vel_y: {goal.replace("UNIT", "m/s")}, ang_vel_z: {goal.replace("UNIT", "rad/s")}}}
"""


@pytest.mark.parametrize("name", ["pg_go1", "urg_g1", "url_g1", "hs_g1_ppo", "hs_g1_fastsac", "rls_go2", "bg_t1"])
def test_every_published_walking_policy_can_be_said(shared_policies, name):
    facts = json.loads((shared_policies / name / "facts.json").read_text(encoding="utf-8"))
    expanded = expand_contract(load_contract(facts_contract(facts)))
    action = expanded.outputs[0].action
    n = len(facts["joints_policy_order"])
    scale = facts["action"]["scale"]
    assert list(action.scale) == (scale if isinstance(scale, list) else [scale] * n)
    assert list(action.offset) == facts["default_joint_pos"]
    assert list(expanded.joints.kp) == facts["kp"]
    width = {"command": 3, "command_lin": 2, "command_ang": 1, "phase": 2, "phase_sin": 2, "phase_cos": 2}
    joints = {"joint_pos_rel", "joint_vel", "last_action"}
    total = sum(n if each["term"] in joints else width.get(each["term"], 3) for each in facts["obs"])
    assert expanded.inputs[0].shape == (1, total * (facts["obs"][0].get("history") or 1))


def test_a_policy_without_goal_on_a_robot_that_would_zero_it_is_refused():
    text = wrong(
        g1_contract(),
        ("      - {term: goal,              of: velocity, scale: 1}\n", ""),
    )
    head, _, tail = text.partition("goals:")
    without = head + "choices:" + tail.partition("choices:")[2]
    assert codes_of(without, g1_robot()) == {"behaviour-impossible"}
    with pytest.raises(InterlockError) as refusal:
        bind(load_contract(text), load_robot(g1_robot()))
    assert refusal.value.code == "goal-unused"
