"""A robot description from vendor files: what they say and no more, tightest kept, conflicts and sources named."""

import math
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.adapters.mjcf_import import import_mjcf
from interlock.contract.codes import HINTS
from interlock.contract.edit import answer
from interlock.contract.expand_robot import expand_robot
from interlock.contract.text import draft_robot, load_robot
from interlock.errors import InterlockError

MJCF = """<mujoco model="two link">
  <compiler angle="{angle}"/>
  <option timestep="0.004"/>
  <default>
    <joint damping="1"/>
    <motor ctrlrange="-9 9"/>
    <default class="leg"><joint range="-1 2" actuatorfrcrange="-30 40"/>
      <default class="knee"><joint range="0 1.5"/></default>
    </default>
  </default>
  <worldbody>
    <body name="trunk" childclass="leg">
      {free}
      <body><joint name="left_hip_joint"/>
        <body><joint name="left_knee_joint" class="knee"/></body></body>
      <body><joint name="right_hip_joint" range="-2 1"/>
        <body><joint name="right_knee_joint" class="knee"/></body></body>
      <body><joint name="tail_joint" type="slide" range="0 0.1" class="main"/></body>
    </body>
    <body name="ball"><freejoint/></body>
  </worldbody>
  <actuator>
    <motor joint="left_hip_joint" gear="5"/>
    <motor joint="left_knee_joint" ctrlrange="-20 20"/>
    <motor joint="right_hip_joint" forcerange="-25 25" ctrlrange="-99 99"/>
    <motor joint="right_knee_joint" ctrllimited="false"/>
  </actuator>
  <sensor><gyro site="imu"/><velocimeter site="imu"/></sensor>
</mujoco>"""

URDF = """<robot name="two link">
  <joint name="left_hip_joint" type="revolute"><limit lower="-0.9" upper="3" effort="28" velocity="12"/></joint>
  <joint name="left_knee_joint" type="revolute"><limit lower="0" upper="1.5" effort="50" velocity="15"/></joint>
  <joint name="right_hip_joint" type="continuous"><limit effort="28" velocity="12"/></joint>
  <joint name="skull_joint" type="fixed"/>
</robot>"""


def mjcf(angle="radian", free="<freejoint/>"):
    return MJCF.format(angle=angle, free=free)


def _import(files, **options):
    return import_mjcf([(name, text.encode("utf-8", "surrogatepass")) for name, text in files], **options)


def draft(text):
    made = draft_robot(text)
    assert made.problems == ()
    return made


def code_of(*files):
    with pytest.raises(InterlockError) as refusal:
        _import(files)
    assert all(each.hint for each in refusal.value.problems)
    return refusal.value.code


ANSWERS = {
    "driver.use": "acme",
    "driver.network": "eth0",
    "driver.period_ms": 4,
    "sensors.joints.period_ms": 4,
    "sensors.joints.clock": "host",
    "sensors.imu.period_ms": 4,
    "sensors.imu.clock": "host",
    "joints.each.*.vel": 10,
    "joints.each.*.kp_max": 100,
    "joints.each.*.kd_max": 5,
    "joints.source.vel": "data sheet",
    "joints.source.kp_max": "data sheet",
    "joints.source.kd_max": "data sheet",
    "safe.policy_lost.kd.others": 2,
    "safe.supervisor_lost.command_timeout_ms": 20,
    "safe.supervisor_lost.drives_then": "damp",
    "safe.estop.by": "remote",
    "safe.estop.cuts": "torque",
    "safe.estop.bound_ms": 50,
}


def answered(text):
    known = {ask.group for ask in draft(text).asks}
    return load_robot(answer(text, {key: value for key, value in ANSWERS.items() if key in known}))


def test_what_the_files_do_not_say_is_asked_and_nothing_else():
    asked = {ask.group for ask in draft(_import([("a.xml", mjcf())]).text).asks}
    assert asked == set(ANSWERS)


def test_ranges_and_torques_come_with_class_defaults_gear_and_control_range():
    robot = expand_robot(answered(_import([("a.xml", mjcf())]).text))
    assert robot.names == ("left_hip_joint", "left_knee_joint", "right_hip_joint", "right_knee_joint")
    assert robot.limits["pos"] == ((-1, 2), (0, 1.5), (-2, 1), (0, 1.5))
    assert robot.limits["torque"] == (30, 20, 25, 30)


def test_unlimited_control_leaves_the_joints_own_bound():
    text = (
        mjcf()
        .replace('actuatorfrcrange="-30 40"', "")
        .replace('ctrllimited="false"', 'ctrllimited="false" forcerange="-7 7"')
    )
    robot = draft(_import([("a.xml", text)]).text).tree.data
    assert robot["joints"]["each"]["right_knee"]["torque"] == 7
    assert robot["joints"]["each"]["left_hip"]["torque"] == 45  # control range 9 x gear 5


def test_degrees_become_radians_and_slides_stay_metres():
    text = mjcf("degree").replace("</actuator>", '<motor joint="tail_joint"/></actuator>')
    data = draft(_import([("a.xml", text)]).text).tree.data
    assert data["joints"]["each"]["left_hip"]["pos"] == pytest.approx([math.radians(-1), math.radians(2)], rel=1e-8)
    assert data["joints"]["each"]["tail"]["pos"] == [0, 0.1]
    assert data["joints"]["unit"]["tail"] == "m"


def test_a_block_that_lies_about_does_not_make_the_base_float():
    assert _import([("a.xml", mjcf())]).is_floating
    fixed = _import([("a.xml", mjcf(free=""))])
    assert not fixed.is_floating
    assert "base: fixed" in fixed.text


def test_a_floating_base_is_never_given_a_held_pose():
    text = _import([("a.xml", mjcf())]).text
    assert "stop_and_hold" not in text
    assert "policy_lost: {do: damp" in text


def test_of_several_files_the_tightest_is_kept_and_conflicts_are_named():
    made = _import([("a.xml", mjcf()), ("b.urdf", URDF)])
    lines = made.conflicts
    assert "left_hip pos [-1, 2] | [-0.9, 3] -> [-0.9, 2]" in lines
    assert "left_hip torque 30 | 28 -> 28" in lines
    assert "left_knee torque 20 | 50 -> 20" in lines
    assert any("b.urdf: says nothing about right_knee_joint" in note for note in made.notes)
    assert all(line in made.text for line in lines)
    data = draft(made.text).tree.data
    assert data["joints"]["each"]["left_knee"]["vel"] == 15
    assert data["joints"]["each"]["right_knee"]["vel"] == "ask"
    assert data["joints"]["source"] == {
        "pos": "narrowest of a.xml, b.urdf",
        "vel": "b.urdf",
        "torque": "lowest of a.xml, b.urdf",
        "kp_max": "ask",
        "kd_max": "ask",
    }


def test_the_summary_says_what_it_is_and_what_nobody_said():
    made = _import([("a.xml", mjcf())])
    assert made.summary == "4 joints, floating base (falls when nobody balances it)"
    assert "joints.each.*.vel (4 rows)" in made.asks
    assert "safe.estop.bound_ms" in made.asks


def test_the_same_files_make_the_same_text():
    files = [("a.xml", mjcf()), ("b.urdf", URDF)]
    assert _import(files) == _import(files)


def test_a_simulated_robot_needs_no_driver_and_no_switch():
    asked = {ask.path for ask in draft(_import([("a.xml", mjcf())], simulated=True).text).asks}
    assert not any(path.startswith(("driver", "sensors", "safe.estop", "safe.supervisor_lost")) for path in asked)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "xml-syntax"),
        ("<mujoco>", "xml-syntax"),
        ("<mujoco/>", "mjcf-empty"),
        ("<sdf/>", "mjcf-empty"),
        ('<!DOCTYPE mujoco [<!ENTITY a "b">]><mujoco>&a;</mujoco>', "xml-unsafe"),
        ('<!DOCTYPE mujoco SYSTEM "file:///etc/passwd"><mujoco/>', "xml-unsafe"),
        ("<mujoco>&undefined;</mujoco>", "xml-syntax"),
        ('<mujoco><include file="../../etc/passwd"/></mujoco>', "mjcf-unsupported"),
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "joint-name"),
        ('<mujoco><worldbody><body><joint name="a b"/></body></worldbody></mujoco>', "joint-name"),
        ('<mujoco><worldbody><body><joint name="a" range="0"/></body></worldbody></mujoco>', "wrong-value"),
        ('<mujoco><worldbody><body><joint name="a" range="nan 1"/></body></worldbody></mujoco>', "wrong-value"),
        ('<mujoco><worldbody><body><joint name="a" range="0 1e400"/></body></worldbody></mujoco>', "wrong-value"),
        ('<mujoco><worldbody><body><joint name="a" class="x"/></body></worldbody></mujoco>', "wrong-value"),
        ("<mujoco>" + "<body>" * 300 + "</body>" * 300 + "</mujoco>", "xml-too-large"),
        ('<robot><joint name="a" type="revolute"><limit lower="x"/></joint></robot>', "wrong-value"),
    ],
)
def test_a_broken_or_hostile_file_is_refused(text, code):
    assert code_of(("a.xml", text)) == code


def test_files_of_different_machines_are_refused():
    other = URDF.replace("hip_joint", "elbow_joint").replace("knee_joint", "wrist_joint")
    assert code_of(("a.xml", mjcf()), ("b.urdf", other)) == "mjcf-disagree"
    apart = URDF.replace('lower="-0.9" upper="3"', 'lower="2.5" upper="3"')
    assert code_of(("a.xml", mjcf()), ("b.urdf", apart)) == "mjcf-disagree"
    assert code_of() == "mjcf-empty"


def test_entities_do_not_grow():
    bomb = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {b} "&{a};&{a};">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert code_of(("a.xml", bomb + "]><mujoco>&i;</mujoco>")) == "xml-unsafe"


def made_or_refused(text):
    try:
        return _import([("a.xml", text)])
    except InterlockError as refusal:
        if refusal.code not in HINTS:
            raise
        return None


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_mutated_file_is_read_or_refused(data):
    text = data.draw(st.sampled_from([mjcf(), URDF]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        new = data.draw(
            st.text(max_size=4)
            | st.sampled_from(["<", ">", '"', "&lt;", "-", "1e9", "nan", "<joint/>", "\x00", "class", "joint"])
        )
        text = text[:at] + new + text[at + data.draw(st.integers(0, 10)) :]
    made = made_or_refused(text)
    assert made is None or draft_robot(made.text).problems == ()


@pytest.mark.parametrize("name", ["url_g1", "hs_g1_ppo", "pg_go1", "bg_t1", "rls_go2", "urg_g1"])
def test_real_models_are_read_as_the_simulator_reads_them(shared_policies, name):
    mujoco = pytest.importorskip("mujoco", reason="needs the extra `sim`")
    path = shared_policies / name / "model.xml"
    data = draft(_import([("model.xml", path.read_text(encoding="utf-8"))]).text).tree.data
    model = mujoco.MjModel.from_xml_path(str(path))
    suffix = data["joints"].get("name_suffix", "")
    patterns = data["joints"]["each"]
    for short in data["joints"]["order"]:
        row = next(row for pattern, row in patterns.items() if re.fullmatch(pattern, short))
        joint = model.joint(short + suffix)
        assert row["pos"] == pytest.approx(list(joint.range), rel=1e-6)
        actuator = next(i for i in range(model.nu) if model.actuator_trnid[i, 0] == joint.id)
        bounds = [
            abs(side)
            for values, limited in (
                (model.jnt_actfrcrange[joint.id], model.jnt_actfrclimited[joint.id]),
                (model.actuator_forcerange[actuator], model.actuator_forcelimited[actuator]),
                (
                    model.actuator_ctrlrange[actuator],
                    model.actuator_ctrllimited[actuator] and model.actuator_biastype[actuator] == 0,
                ),
            )
            if limited
            for side in values
        ]
        assert row["torque"] == (pytest.approx(min(bounds), rel=1e-6) if bounds else "ask")
    assert data["base"] == "floating"
    assert data["sim"]["step_ms"] == pytest.approx(model.opt.timestep * 1000)


def test_the_arm_among_loose_blocks_is_a_fixed_robot(request):
    scene = request.config.rootpath / "python" / "interlock" / "adapters" / "arm" / "scene.xml"
    made = _import([("scene.xml", scene.read_text(encoding="utf-8"))])
    data = draft(made.text).tree.data
    assert (data["base"], data["joints"]["order"]) == ("fixed", ["base_yaw", "shoulder", "elbow", "wrist"])
    assert data["joints"]["accepts"] == ["position"]
