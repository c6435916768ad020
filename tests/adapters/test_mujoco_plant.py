"""A two-joint cart on a plane, with motors or with position servos, and what a plant made from it promises."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

mujoco = pytest.importorskip("mujoco", reason="needs the extra `sim`")

from interlock.adapters.mujoco_plant import MujocoPlant  # noqa: E402
from interlock.adapters.mujoco_start import Start  # noqa: E402
from interlock.errors import InterlockError  # noqa: E402
from interlock.ports.driver import Command, CommandKind, State  # noqa: E402
from interlock.ports.plant import Plant  # noqa: E402

F64 = NDArray[np.float64]

JOINTS = ("right_wing", "left_wing")  # robot order; the model has them the other way round
PERIOD_NS = 10_000_000
STEP_S = 0.002
KP, KD = 20.0, 0.8
SERVO_KP, SERVO_KV, PASSIVE_KD = 15.0, 0.3, 0.2
TORQUE_LIMIT = 4.0
GRAVITY = 9.81

MOTORS = """
    <motor name="l" joint="left_wing" ctrlrange="-4 4" ctrllimited="true"/>
    <motor name="r" joint="right_wing" ctrlrange="-4 4" ctrllimited="true"/>
"""
SERVOS = f"""
    <position name="l" joint="left_wing" kp="{SERVO_KP}" kv="{SERVO_KV}" forcerange="-4 4"/>
    <position name="r" joint="right_wing" kp="{SERVO_KP}" kv="{SERVO_KV}" forcerange="-4 4"/>
"""
FREE = '<freejoint name="base"/>'


def mjcf(actuators: str = MOTORS, base: str = FREE, height: float = 0.1) -> str:
    """A box with a wing on either side; the IMU sits ahead of the box's centre."""
    wing = (
        '<joint name="{0}_wing" axis="1 0 0" damping="{1}" armature="0.05"/>'
        '<geom type="capsule" size="0.02" mass="0.2" fromto="0 0 0 0 {2} 0"/>'
    )
    return f"""
    <mujoco model="cart">
      <option timestep="{STEP_S}"/>
      <worldbody>
        <geom name="floor" type="plane" size="5 5 0.1"/>
        <body name="cart" pos="0 0 {height}">
          {base}
          <geom type="box" size="0.2 0.1 0.1" mass="5"/>
          <site name="imu" pos="0.1 0 0"/>
          <body name="left" pos="0 0.15 0">{wing.format("left", PASSIVE_KD, 0.3)}</body>
          <body name="right" pos="0 -0.15 0">{wing.format("right", PASSIVE_KD, -0.3)}</body>
        </body>
      </worldbody>
      <actuator>{actuators}</actuator>
      <keyframe>
        <key name="turned" qpos="0 0 0.1 0.7071067811865476 0 0 0.7071067811865476 0.3 -0.2"/>
      </keyframe>
    </mujoco>
    """


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., MujocoPlant]:
    """Builds a plant from the text of a model."""

    def build(text: str = mjcf(), joints: tuple[str, ...] = JOINTS, **options: Any) -> MujocoPlant:
        path = tmp_path / "cart.xml"
        path.write_text(text)
        return MujocoPlant(path, joints, **({"period_ns": PERIOD_NS} | options))

    return build


def fixed(actuators: str = MOTORS) -> str:
    """The cart bolted down, without the keyframe of the floating one."""
    text = mjcf(actuators, base="", height=1.0)
    return text[: text.index("<keyframe>")] + text[text.index("</keyframe>") + len("</keyframe>") :]


def pd(target: float | F64, *, kp: float = KP, kd: float = KD, torque: float = 0.0) -> Command:
    """A PD command, the same for both joints unless `target` is an array."""
    n = len(JOINTS)
    return Command(
        kind=CommandKind.POSITION_PD,
        running=True,
        target=np.full(n, target) if isinstance(target, float) else target,
        velocity=np.zeros(n),
        torque=np.full(n, torque),
        kp=np.full(n, kp),
        kd=np.full(n, kd),
    )


def command(kind: CommandKind, **fields: float) -> Command:
    """A command of another kind."""
    values = {
        name: np.full(len(JOINTS), fields.get(name, 0.0)) for name in ("target", "velocity", "torque", "kp", "kd")
    }
    return Command(kind=kind, running=True, **values)


def measured(plant: MujocoPlant) -> State:
    """A fresh measurement."""
    state = State(len(JOINTS))
    plant.read(state)
    return state


def run(plant: MujocoPlant, commands: Sequence[Command | None]) -> F64:
    """Every state on the way, one row each."""
    rows = []
    for each in commands:
        plant.step(each)
        rows.append(measured(plant).flat.copy())
    return np.stack(rows)


# Names, not places.


def test_joints_are_found_by_name_whatever_their_order_in_the_model(make: Callable[..., MujocoPlant]) -> None:
    plant = make(fixed(), start=Start(joints_rad=np.array([0.4, -0.1])))
    np.testing.assert_array_equal(measured(plant).pos, [0.4, -0.1])
    np.testing.assert_array_equal(
        measured(make(fixed(), ("left_wing", "right_wing"), start=Start(joints_rad=np.array([-0.1, 0.4])))).pos,
        [-0.1, 0.4],
    )
    moved = run(plant, [pd(np.array([1.0, -0.1]))] * 30)[-1]
    assert moved[0] > 0.6
    assert abs(moved[1] + 0.1) < 0.3


def test_a_plant_is_a_plant(make: Callable[..., MujocoPlant]) -> None:
    plant: Plant = make()
    assert plant.reset(3) == ""
    assert plant.images() == []
    assert plant.period_ns == PERIOD_NS


@pytest.mark.parametrize(
    ("code", "text", "joints", "options"),
    [
        ("joint-unknown", mjcf(), ("right_wing", "left_wink"), {}),
        ("joint-kind", mjcf(), ("right_wing", "base"), {}),
        ("actuator-missing", mjcf(MOTORS.splitlines()[1]), JOINTS, {}),
        ("actuator-missing", mjcf(MOTORS + '<motor joint="left_wing"/>'), JOINTS, {}),
        ("actuator-extra", mjcf(), ("left_wing",), {}),
        ("actuator-kind", mjcf(MOTORS.splitlines()[1] + SERVOS.splitlines()[2]), JOINTS, {}),
        ("actuator-kind", mjcf(MOTORS.replace("motor", "velocity")), JOINTS, {}),
        ("period-not-a-multiple", mjcf(), JOINTS, {"period_ns": 3_000_000}),
        ("period-not-a-multiple", mjcf(), JOINTS, {"step_ns": 4_000_000}),
        ("site-unknown", mjcf(), JOINTS, {"imu_site": "head"}),
        ("start-unknown", mjcf(), JOINTS, {"start": Start(keyframe="home")}),
        ("start-unknown", mjcf(), JOINTS, {"start": Start(joints_rad=np.zeros(3))}),
        ("start-unknown", fixed(), JOINTS, {"start": Start(base_height_m=0.5)}),
        ("mjcf-unreadable", "<mujoco><worldbody>", JOINTS, {}),
    ],
)
def test_what_does_not_fit_the_model_is_refused(
    make: Callable[..., MujocoPlant], code: str, text: str, joints: tuple[str, ...], options: dict[str, Any]
) -> None:
    with pytest.raises(InterlockError) as refusal:
        make(text, joints, **options)
    assert refusal.value.code == code


def test_a_refused_joint_name_lists_the_names_that_exist(make: Callable[..., MujocoPlant]) -> None:
    with pytest.raises(InterlockError, match="left_wing, right_wing"):
        make(joints=("right_wing", "left_wink"))


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InterlockError, match=r"absent\.xml"):
        MujocoPlant(tmp_path / "absent.xml", JOINTS, period_ns=PERIOD_NS)


# Drives.


def test_a_motor_runs_the_pd_law_with_feed_forward(make: Callable[..., MujocoPlant]) -> None:
    plant = make(fixed(), period_ns=round(STEP_S * 1e9), start=Start(joints_rad=np.array([0.1, -0.05])))
    run(plant, [pd(0.0, torque=0.3)] * 5)
    before = measured(plant)
    plant.step(pd(0.05, torque=0.3))
    expected = KP * (0.05 - before.pos) - KD * before.vel + 0.3
    assert np.abs(expected).max() < TORQUE_LIMIT
    np.testing.assert_allclose(measured(plant).torque, expected, rtol=0, atol=1e-12)


def test_the_model_clips_what_a_drive_asks_for(make: Callable[..., MujocoPlant]) -> None:
    for text in (fixed(), fixed(SERVOS)):
        plant = make(text)
        plant.step(pd(3.0, kp=SERVO_KP, kd=SERVO_KV + PASSIVE_KD))
        np.testing.assert_allclose(np.abs(measured(plant).torque), TORQUE_LIMIT)


def test_drives_act_at_the_physics_rate_between_commands(make: Callable[..., MujocoPlant]) -> None:
    slow, fast = make(fixed()), make(fixed(), period_ns=round(STEP_S * 1e9))
    slow_rows = run(slow, [pd(0.5)] * 20)
    fast_rows = run(fast, [pd(0.5)] * 100)
    np.testing.assert_array_equal(slow_rows, fast_rows[4::5])


def test_without_a_command_the_drives_keep_acting_on_the_last(make: Callable[..., MujocoPlant]) -> None:
    np.testing.assert_array_equal(run(make(), [pd(0.5)] * 9), run(make(), [pd(0.5), *[None] * 8]))


def test_a_torque_command_is_the_torque(make: Callable[..., MujocoPlant]) -> None:
    plant = make(fixed())
    plant.step(command(CommandKind.TORQUE, torque=1.5))
    np.testing.assert_allclose(measured(plant).torque, 1.5)
    plant.step(command(CommandKind.OFF))
    np.testing.assert_allclose(measured(plant).torque, 0.0)


def test_position_servos_take_targets_and_only_their_own_gains(make: Callable[..., MujocoPlant]) -> None:
    own = {"kp": SERVO_KP, "kd": SERVO_KV + PASSIVE_KD}
    np.testing.assert_array_equal(
        run(make(fixed(SERVOS)), [pd(0.5, **own)] * 9),
        run(make(fixed(SERVOS)), [command(CommandKind.POSITION, target=0.5)] * 9),
    )
    for wrong in ({"kp": SERVO_KP * 1.01}, {"kd": SERVO_KV}):
        with pytest.raises(InterlockError, match="the gain of the model's position actuator") as refusal:
            make(fixed(SERVOS)).step(pd(0.5, **(own | wrong)))
        assert refusal.value.code == "gains-not-the-models"


def test_position_servos_can_damp_and_come_back(make: Callable[..., MujocoPlant]) -> None:
    plant = make(fixed(SERVOS), period_ns=round(STEP_S * 1e9))
    run(plant, [command(CommandKind.POSITION, target=0.3)] * 10)
    before = measured(plant)
    plant.step(pd(0.0, kp=0.0, kd=1.2))
    np.testing.assert_allclose(measured(plant).torque, -1.2 * before.vel, atol=1e-12)
    before = measured(plant)
    plant.step(command(CommandKind.POSITION, target=0.3))
    np.testing.assert_allclose(
        measured(plant).torque, SERVO_KP * (0.3 - before.pos) - SERVO_KV * before.vel, atol=1e-12
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (fixed(), command(CommandKind.POSITION)),
        (fixed(), command(CommandKind.VELOCITY)),
        (fixed(SERVOS), command(CommandKind.TORQUE)),
        (fixed(SERVOS), command(CommandKind.POSITION_PD, torque=1.0, kp=SERVO_KP, kd=SERVO_KV + PASSIVE_KD)),
    ],
)
def test_a_command_that_the_actuators_cannot_do_is_refused(
    make: Callable[..., MujocoPlant], text: str, wanted: Command
) -> None:
    with pytest.raises(InterlockError) as refusal:
        make(text).step(wanted)
    assert refusal.value.code == "command-kind"


@pytest.mark.parametrize("field", ["target", "velocity", "torque", "kp", "kd"])
def test_a_number_that_is_not_finite_never_reaches_a_drive(make: Callable[..., MujocoPlant], field: str) -> None:
    with pytest.raises(InterlockError) as refusal:
        make(fixed()).step(command(CommandKind.POSITION_PD, **{field: float("nan")}))
    assert refusal.value.code == "command-not-finite"


# What the drives do by themselves.


def test_damping_drives_brake_every_joint(make: Callable[..., MujocoPlant]) -> None:
    plant = make(fixed(), period_ns=round(STEP_S * 1e9))
    run(plant, [pd(0.5)] * 10)
    before = measured(plant)
    plant.drives("damp", np.array([0.7, 0.1]))
    plant.step(None)
    np.testing.assert_allclose(measured(plant).torque, -np.array([0.7, 0.1]) * before.vel, atol=1e-12)


def test_limp_drives_do_nothing(make: Callable[..., MujocoPlant]) -> None:
    plant = make(fixed())
    run(plant, [pd(0.5)] * 10)
    plant.drives("limp")
    plant.step(None)
    np.testing.assert_array_equal(measured(plant).torque, 0.0)


def test_holding_drives_hold_what_is_measured_with_the_last_gains(make: Callable[..., MujocoPlant]) -> None:
    for text in (fixed(), fixed(SERVOS)):
        plant = make(text, period_ns=round(STEP_S * 1e9))
        run(plant, [pd(0.4, kp=SERVO_KP, kd=SERVO_KV + PASSIVE_KD)] * 20)
        held = measured(plant).pos.copy()
        plant.drives("hold")
        plant.step(None)
        before = measured(plant)
        plant.step(None)
        kd = SERVO_KV if text == fixed(SERVOS) else SERVO_KV + PASSIVE_KD  # a servo's passive part is not its torque
        np.testing.assert_allclose(measured(plant).torque, SERVO_KP * (held - before.pos) - kd * before.vel, atol=1e-12)


def test_drives_that_keep_their_target_change_nothing(make: Callable[..., MujocoPlant]) -> None:
    plant = make(fixed())
    plant.step(pd(0.5))
    plant.drives("keep_last_target")
    np.testing.assert_array_equal(run(plant, [None] * 5), run(make(fixed()), [pd(0.5)] * 6)[1:])


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [("hold", "behaviour-incomplete"), ("damp", "behaviour-incomplete"), ("dance", "behaviour-unknown")],
)
def test_a_behaviour_without_what_it_needs_is_refused(
    make: Callable[..., MujocoPlant], behaviour: str, code: str
) -> None:
    with pytest.raises(InterlockError) as refusal:
        make(fixed()).drives(behaviour)
    assert refusal.value.code == code


# Measurements.


def test_base_velocities_are_in_the_frame_of_the_imu(make: Callable[..., MujocoPlant]) -> None:
    plant = make(start=Start(keyframe="turned"))
    np.testing.assert_allclose(measured(plant).quat_wxyz, [np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    plant.push(np.array([1.0, 0.5, 0.0]))  # the cart looks along the world's y axis
    np.testing.assert_allclose(measured(plant).lin_vel, [0.5, -1.0, 0.0], atol=1e-12)
    assert plant.outcome().forward_mps == pytest.approx(0.5)


def test_the_imu_moves_with_its_lever_arm(make: Callable[..., MujocoPlant]) -> None:
    plant = make(mjcf(height=3.0), period_ns=round(STEP_S * 1e9))
    level = make(mjcf(height=3.0).replace('<site name="imu" pos="0.1 0 0"/>', ""), period_ns=round(STEP_S * 1e9))
    push = [command(CommandKind.TORQUE, torque=2.0)] * 40
    at_imu, at_root = run(plant, push)[-1], run(level, push)[-1]
    turn, offset = at_imu[-6:-3], np.array([0.1, 0.0, 0.0])
    assert np.abs(turn).max() > 0.0
    np.testing.assert_allclose(at_imu[-3:], at_root[-3:] + np.cross(turn, offset), atol=1e-12)


def test_a_measurement_is_of_this_instant_not_of_the_last_physics_step(
    make: Callable[..., MujocoPlant],
) -> None:
    plant = make(mjcf(height=3.0), period_ns=round(STEP_S * 1e9))
    plant.step(None)
    np.testing.assert_allclose(measured(plant).lin_vel[2], -GRAVITY * STEP_S, rtol=1e-9)


def test_a_fixed_base_measures_its_orientation_and_rest(make: Callable[..., MujocoPlant]) -> None:
    plant = make(fixed().replace('<site name="imu" pos="0.1 0 0"/>', ""))
    plant.step(pd(0.5))
    state = measured(plant)
    np.testing.assert_array_equal(state.quat_wxyz, [1, 0, 0, 0])
    np.testing.assert_array_equal(np.concatenate([state.ang_vel, state.lin_vel]), 0.0)
    assert not plant.is_fallen()
    with pytest.raises(InterlockError, match="a floating base"):
        plant.push(np.ones(3))


# Falling.


def test_a_tilted_robot_has_fallen(make: Callable[..., MujocoPlant]) -> None:
    text = mjcf(height=1.0).replace("0.7071067811865476 0 0 0.7071067811865476", "0.5 0.866025 0 0")
    assert not make(text).is_fallen()
    assert make(text, start=Start(keyframe="turned")).is_fallen()


def test_a_robot_that_collapses_without_tilting_has_fallen(make: Callable[..., MujocoPlant]) -> None:
    plant = make(mjcf(height=0.5))
    assert not plant.outcome().fallen
    rows = run(plant, [None] * 60)
    assert abs(rows[-1][6]) > 0.99  # quaternion w: still level
    assert plant.outcome().fallen
    assert plant.base_position_m()[2] < 0.15


@pytest.mark.parametrize("torque", [1e7, 1e14])
def test_a_diverged_simulation_is_reported_and_never_stands_up_again(
    make: Callable[..., MujocoPlant], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torque: float
) -> None:
    monkeypatch.chdir(tmp_path)
    plant = make(mjcf(MOTORS.replace('ctrlrange="-4 4" ctrllimited="true"', ""), height=1.0))
    for _ in range(20):
        plant.step(command(CommandKind.TORQUE, torque=torque))
    assert plant.outcome().diverged
    assert plant.outcome().fallen
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
    plant.reset(0)
    assert not plant.outcome().diverged
    assert np.isfinite(measured(plant).flat).all()


# The same every time.


@pytest.mark.parametrize("actuators", [MOTORS, SERVOS])
def test_a_reset_brings_back_the_same_run_bit_for_bit(make: Callable[..., MujocoPlant], actuators: str) -> None:
    gains = {"kp": SERVO_KP, "kd": SERVO_KV + PASSIVE_KD}
    commands: list[Command | None] = [pd(0.3 * np.sin(0.2 * i) * np.ones(2), **gains) for i in range(40)]
    plant = make(mjcf(actuators), start=Start(noise_rad=0.05))
    plant.reset(7)
    first = run(plant, commands)
    plant.drives("damp", np.ones(2))
    run(plant, [None] * 5)
    plant.push(np.ones(3))
    plant.reset(7)
    np.testing.assert_array_equal(run(plant, commands), first)
    again = make(mjcf(actuators), start=Start(noise_rad=0.05))
    again.reset(7)
    np.testing.assert_array_equal(run(again, commands), first)
    assert plant.time_ns == len(commands) * PERIOD_NS


def test_a_seed_decides_the_noise_of_the_start_pose(make: Callable[..., MujocoPlant]) -> None:
    plant = make(fixed(), start=Start(joints_rad=np.array([0.4, -0.1]), noise_rad=0.05))
    poses = []
    for seed in (1, 2, 1):
        plant.reset(seed)
        poses.append(measured(plant).pos.copy())
    np.testing.assert_array_equal(poses[0], poses[2])
    assert np.all(poses[0] != poses[1])
    assert np.abs(np.array(poses) - [0.4, -0.1]).max() <= 0.05


def test_the_robot_file_may_set_the_physics_step(make: Callable[..., MujocoPlant]) -> None:
    coarse = run(make(fixed(), step_ns=5_000_000), [pd(0.5)] * 10)[-1]
    fine = run(make(fixed(), step_ns=1_000_000), [pd(0.5)] * 10)[-1]
    assert np.abs(coarse[:2] - fine[:2]).max() > 1e-4
    np.testing.assert_allclose(coarse[:2], fine[:2], atol=0.05)


def test_a_plant_has_no_task(make: Callable[..., MujocoPlant]) -> None:
    with pytest.raises(InterlockError) as refusal:
        make().reset(0, "reach the red block")
    assert refusal.value.code == "task-unknown"
