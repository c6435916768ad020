"""What every driver owes the loop. A new driver gets an entry in `CASES` and nothing else."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_controller import BenchController

from interlock import _core
from interlock.cli.wiring import make_driver
from interlock.contract.bind import bind
from interlock.contract.identity import expand
from interlock.contract.text import load_contract, load_robot
from interlock.errors import InterlockError
from interlock.ports.driver import Command, CommandKind, Driver, State

ROOT = Path(__file__).parents[2]
ARM = ROOT / "python" / "interlock" / "adapters" / "arm"
EXAMPLE = ROOT / "examples" / "driver"
STEP = {"rad": 0.05, "deg": 3.0}
SAME = {"rad": 0.005, "deg": 0.3}
REST = {"rad": 0.02, "deg": 1.0}
PAUSE = threading.Event()


@dataclass
class Case:
    """A driver that is not connected yet, and what its test may do to the robot behind it.

    Attributes:
        driver: Not connected.
        robot: Its robot file, expanded.
        kind: A kind of command that it takes.
        mute: Makes the robot fall silent; None where it cannot.
    """

    driver: Driver
    robot: dict[str, Any]
    kind: CommandKind = CommandKind.POSITION
    mute: Callable[[], None] | None = None

    @property
    def joints(self) -> int:
        return len(self.robot["names"])

    @property
    def unit(self) -> str:
        return self.robot["unit"][0]

    def command(self, target, *, kind: CommandKind | None = None) -> Command:
        zeros = np.zeros(self.joints)
        return Command(self.kind if kind is None else kind, True, np.array(target, float), *([zeros] * 4))

    def read(self) -> State:
        state = State(self.joints)
        self.driver.read(state, _core.monotonic_ns())
        return state

    def live(self, seconds: float, target=None) -> State:
        """The host's loop: reads, takes images, commands `target`."""
        until = _core.monotonic_ns() + int(seconds * 1e9)
        while (now := _core.monotonic_ns()) < until:
            state = self.read()
            list(self.driver.images(now))
            if target is not None:
                self.driver.write(self.command(target), now)
            PAUSE.wait(self.driver.period_ns / 1e9)
        return state


@contextlib.contextmanager
def simulated_arm() -> Iterator[Case]:
    pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")
    contract = load_contract((ARM / "frozen" / "contract.yaml").read_text(encoding="utf-8"))
    binding = bind(contract, load_robot((ARM / "robot.yaml").read_text(encoding="utf-8")))
    robot = binding.robot.as_json()
    configuration = {
        "driver": "sim:arm", "driver_options": {"seed": 1}, "robot": robot, "plan": binding.plan(),
        "robot_folder": str(ARM),
    }  # fmt: skip
    yield Case(make_driver(configuration), robot)


@contextlib.contextmanager
def bench_arm() -> Iterator[Case]:
    robot = expand(load_robot((EXAMPLE / "robot.yaml").read_text(encoding="utf-8"))).as_json()
    with BenchController() as controller:
        robot["driver"]["port"] = controller.port
        yield Case(example().BenchArm(robot=robot), robot, mute=lambda: setattr(controller, "is_mute", True))


def example():
    spec = importlib.util.spec_from_file_location("bench_arm", EXAMPLE / "bench_arm.py")
    module = sys.modules.setdefault("bench_arm", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


CASES = {"sim:arm": simulated_arm, "bench_arm": bench_arm}


@pytest.fixture(params=CASES)
def case(request):
    with CASES[request.param]() as made:
        yield made


@pytest.fixture
def connected(case):
    case.driver.connect()
    yield case
    case.driver.stop()
    case.driver.close()


def test_its_period_is_the_robot_files(case):
    assert case.driver.period_ns == round(case.robot["driver"]["period_ms"] * 1e6)


def test_connecting_moves_nothing(connected):
    before = connected.read().pos.copy()
    after = connected.live(0.3)
    assert np.abs(after.pos - before).max() < SAME[connected.unit]


def test_a_read_gives_what_the_robot_file_promises(connected):
    state = connected.live(0.1)
    gives = connected.robot["sensors"]["joints"]["gives"]
    assert np.isfinite(state.pos).all()
    assert np.isfinite(state.vel).all() == ("vel" in gives)
    assert np.isfinite(state.torque).all() == ("torque" in gives)


def test_the_time_of_capture_advances_and_is_never_in_the_future(connected):
    times = []
    for _ in range(20):
        times.append(connected.live(0.02).capture_ns)
        assert 0 < times[-1] <= _core.monotonic_ns()
    assert times == sorted(times)
    assert times[-1] > times[0]


def test_a_silent_robot_keeps_the_time_of_its_last_measurement(connected):
    if connected.mute is None:
        pytest.skip("a simulation does not fall silent; its process does")
    connected.live(0.1)
    connected.mute()
    last = connected.live(0.1)
    later = connected.live(0.2)
    assert later.capture_ns == last.capture_ns
    assert np.array_equal(later.pos, last.pos)


def test_a_target_moves_its_own_joint_and_no_other(connected):
    step = STEP[connected.unit]
    start = connected.live(0.1).pos.copy()
    for joint in range(connected.joints):
        target = start.copy()
        target[joint] += step
        moved = connected.live(0.6, target).pos - start
        assert moved[joint] > 0.5 * step
        assert np.abs(np.delete(moved, joint)).max() < 0.5 * step
        start = connected.live(0.6, start).pos.copy()


def test_when_commands_stop_the_robot_comes_to_rest_as_declared(connected):
    far = connected.live(0.1).pos + 5 * STEP[connected.unit]
    connected.live(0.1, far)
    state = connected.live(1.0)
    assert np.abs(state.vel).max() < REST[connected.unit]


def test_letting_go_is_a_command_like_any_other(connected):
    pose = connected.live(0.1).pos
    connected.driver.write(connected.command(pose, kind=CommandKind.OFF), _core.monotonic_ns())
    assert np.isfinite(connected.live(0.1).pos).all()


def test_images_are_those_of_the_robot_file(connected):
    connected.live(0.1)
    cameras = connected.robot["cameras"]
    seen = set()
    for _ in range(40):
        connected.read()
        for image in connected.driver.images(_core.monotonic_ns()):
            assert image.pixels.shape == (*cameras[image.camera]["size_hw"], 3)
            assert image.pixels.dtype == np.uint8
            assert 0 < image.capture_ns <= _core.monotonic_ns()
            seen.add(image.camera)
        PAUSE.wait(0.005)
    assert seen == set(range(len(cameras)))


def test_stopping_twice_is_stopping(connected):
    connected.live(0.1)
    connected.driver.stop()
    connected.driver.stop()


def test_a_robot_that_is_not_there_is_refused_with_a_hint():
    with bench_arm() as case:
        case.robot["driver"]["port"] = 1
        with pytest.raises(InterlockError) as refusal:
            example().BenchArm(robot=case.robot).connect()
    assert refusal.value.problems[0].hint


def test_the_example_fits_on_a_page():
    code = [line for line in inspect.getsource(example().BenchArm).splitlines() if line.strip()]
    assert len(code) <= 40
